import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import { Hint } from "../late/Hint";
import { useNotifications } from "./jobNews";
import classes from "./Watch.module.css";

/** Has the browser tell the end of a comparison; it is asked for that only on a click. */
export function NotifyButton() {
  const { t } = useTranslation();
  const [state, change] = useNotifications();
  if (state === "blocked")
    return (
      <span className={classes.blocked} data-testid="notify-blocked">
        {t("news.blocked")}
      </span>
    );
  return (
    <Hint label={t("news.askHint")}>
      <button
        type="button"
        className={`plain ${classes.notify}`}
        aria-pressed={state === "on"}
        onClick={change}
        data-testid="notify"
      >
        <Icon name={state === "on" ? "check" : "bell"} size={12} />
        {t(state === "on" ? "news.asked" : "news.ask")}
      </button>
    </Hint>
  );
}
