import { Button, Menu, Progress } from "@mantine/core";
import { type MouseEvent, useState } from "react";
import { exportListUrl, exportUrl } from "../../api/comparison/resultFiles";
import { isFiltered } from "../../base/address/address";
import { formatBytes } from "../../base/numbers/format";
import type { TextKey } from "../../texts/translation";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../../widgets/basic/Icon";
import { useKeys } from "../../widgets/basic/useKeys";
import classes from "./Controls.module.css";
import { useSay } from "./selection/notice";
import { useShownComparison } from "./selection/result";
import { useSelection } from "./selection/SelectionProvider";
import { type Exporting, useExport } from "./useExport";

const LIST_FORMATS = ["xlsx", "csv", "json", "junit.xml"] as const;
const FORMATS = ["page.html", "html", ...LIST_FORMATS, "db"] as const;
/** Formats whose ending does not say what they are. */
const NAMED: Readonly<Record<string, { name: TextKey; hint: TextKey }>> = {
  "page.html": { name: "comparison.pageFile", hint: "comparison.pageFileHint" },
  db: { name: "comparison.resultFile", hint: "comparison.resultFileHint" },
};

/** Result files: of everything, or of what the list shows. */
export function ExportMenu() {
  const { t, language } = useTranslation();
  const comparison = useShownComparison();
  const { address, unit } = useSelection();
  const [opened, setOpened] = useState(false);
  const { now, start, cancel } = useExport(useSay());
  useKeys({ export: () => setOpened(true) });
  const item = (format: string, href: string, testId: string) => (
    <Menu.Item
      key={testId}
      component="a"
      href={href}
      download
      // A link, so that it can be copied or opened elsewhere.
      onClick={(event: MouseEvent) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        void start(format, href);
      }}
      title={NAMED[format] && t(NAMED[format].hint)}
      data-testid={testId}
    >
      {NAMED[format] ? t(NAMED[format].name) : format}
    </Menu.Item>
  );
  return (
    <>
      {now && <ExportBar now={now} onCancel={cancel} />}
      <Menu position="bottom-end" opened={opened} onChange={setOpened}>
        <Menu.Target>
          <Button
            variant="default"
            rightSection={<Icon name="down" size={12} />}
            title={`${t("comparison.export")} (e)`}
            data-testid="export"
          >
            {t("comparison.export")}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{t("comparison.exportAll")}</Menu.Label>
          {FORMATS.map((format) => item(format, exportUrl(comparison.id, format, language), `export-${format}`))}
          {isFiltered(address) && (
            <>
              <Menu.Divider />
              <Menu.Label>{t("comparison.exportList")}</Menu.Label>
              {LIST_FORMATS.map((format) =>
                item(format, exportListUrl(comparison.id, format, unit, address), `export-list-${format}`),
              )}
            </>
          )}
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

/** How far the file is: first written, where it cannot be sent at once, then sent. */
function ExportBar({ now: { format, received }, onCancel }: { now: Exporting; onCancel: () => void }) {
  const { t } = useTranslation();
  const sent = formatBytes(received?.sent ?? 0);
  const size = received?.size ?? null;
  const share = size === null ? 100 : size === 0 ? 0 : ((received?.sent ?? 0) / size) * 100;
  return (
    <span className={classes.exporting} data-testid="exporting">
      <span className="dim" aria-live="polite">
        {t("comparison.exportWriting", { format })}
      </span>
      {received && (
        <span className="num dim">{size === null ? sent : t("home.sent", { sent, size: formatBytes(size) })}</span>
      )}
      <Progress w={60} size="sm" value={share} animated={size === null} aria-label={t("comparison.export")} />
      <Button variant="default" size="compact-xs" onClick={onCancel} data-testid="cancel-export">
        {t("app.cancel")}
      </Button>
    </span>
  );
}
