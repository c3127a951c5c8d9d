import { ActionIcon } from "@mantine/core";
import type { ReactNode } from "react";
import { useHealth } from "../../api/records";
import { IN_FILE } from "../../base/inFile";
import { setLanguage } from "../../texts";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import { Link } from "../basic/navigation";
import { Hint } from "../late/Hint";
import { lazyPart } from "../late/lazyPart";
import classes from "./Header.module.css";

const ThemeMenu = lazyPart(async () => (await import("./ThemeMenu")).ThemeMenu, { late: true });

/** The one bar on top; a screen puts its own controls inside. */
export function Header({ children }: { children?: ReactNode }) {
  const { t, language } = useTranslation();
  const other = language === "zh" ? "en" : "zh";
  return (
    <header className={classes.header}>
      <a className="skip" href="#main">
        {t("app.skip")}
      </a>
      {IN_FILE ? (
        <span className={classes.mark}>
          <Logo />
        </span>
      ) : (
        <Link to="" className={classes.mark} aria-label={`dumpscope, ${t("app.home")}`}>
          <Logo />
        </Link>
      )}
      <CopyMark />
      <div className={classes.middle}>{children}</div>
      <Hint label={t("app.language")}>
        <button
          type="button"
          className={`plain ${classes.language}`}
          lang={other}
          data-testid="language"
          onClick={() => void setLanguage(other)}
        >
          {other === "zh" ? "中文" : "EN"}
        </button>
      </Hint>
      <ThemeMenu
        fallback={
          <ActionIcon aria-label={t("app.theme")} aria-busy>
            <Icon name="sun" />
          </ActionIcon>
        }
      />
    </header>
  );
}

function Logo() {
  return (
    <>
      <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
        <rect width="16" height="16" rx="3" fill="#243b53" />
        <path d="M2 10h4l2-6 2 9 1.500-3H14" fill="none" stroke="#ffb86b" strokeWidth="1.600" />
      </svg>
      <span>dumpscope</span>
    </>
  );
}

/** A mark while a copy of a result file is shown, to which changes are not kept. */
function CopyMark() {
  const { t } = useTranslation();
  const files = useHealth().data?.results ?? [];
  if (files.length === 0) return null;
  return (
    <Hint label={t("app.copyMarkHint", { files: files.join(", ") })}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the words come with the focus */}
      <span className={classes.copy} tabIndex={0} data-testid="copy-mark">
        {t("app.copyMark")}
      </span>
    </Hint>
  );
}
