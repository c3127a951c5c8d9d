import { copyText } from "../../../base/text/clipboard";
import { useTranslation } from "../../../texts/useTranslation";
import { useSay } from "./notice";

/** Copies the address of what is shown, and says whether that worked. */
export function useCopyLink(): () => Promise<void> {
  const { t } = useTranslation();
  const say = useSay();
  return async () => {
    const done = await copyText(window.location.href);
    say(done ? t("app.copied") : t("app.copyFailed"));
  };
}
