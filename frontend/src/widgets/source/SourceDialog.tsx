import { Button, Modal } from "@mantine/core";
import { type CallStack, changedFrames, type Frame, foldStack } from "../../base/comparison/stackFrames";
import { useTranslation } from "../../texts/useTranslation";
import { CopyButton } from "../basic/CopyButton";
import classes from "./SourceDialog.module.css";

/** One run's call stack, innermost first. */
export interface SourceOf {
  side: "target" | "golden" | null;
  stack: CallStack;
}

interface SourceDialogProps {
  sides: readonly SourceOf[];
  opened: boolean;
  onClose: () => void;
}

/** Where in the user's code a call was made, by whole paths: to copy, or to open in an editor on the machine that has them. */
export function SourceDialog({ sides, opened, onClose }: SourceDialogProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={opened && sides.length > 0}
      onClose={onClose}
      title={t("source.title")}
      size="xl"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      <div className={classes.body} data-testid="source-dialog">
        {sides.map((one, index) => (
          <Side key={one.side ?? ""} of={one} other={sides[1 - index]} first={index === 0} />
        ))}
        <p className="dim">{t("source.hint")}</p>
      </div>
    </Modal>
  );
}

function Side({ of, other, first }: { of: SourceOf; other: SourceOf | undefined; first: boolean }) {
  const { t } = useTranslation();
  const lines = foldStack(of.stack).user;
  const rival = other ? foldStack(other.stack).user : [];
  const changed = rival.length > 0 ? changedFrames(lines, rival) : new Set<Frame>();
  return (
    <section aria-label={t(`comparison.${of.side ?? "target"}`)}>
      {of.side !== null && <h3 className={classes.side}>{t(`comparison.${of.side}`)}</h3>}
      {lines.length === 0 && <p className="dim">{t("evidence.stackNone")}</p>}
      <ol className={classes.lines}>
        {lines.map((frame, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a recursive call repeats its frame
          <li key={index} className={classes.line} data-changed={changed.has(frame) || undefined}>
            <code className={classes.code}>{frame.code || frame.text}</code>
            <span className={classes.place}>
              <span className="mono">{wholePlace(frame)}</span>
              {frame.function && <span className="dim"> {frame.function}</span>}
              {changed.has(frame) && <span className={classes.changed}>{t("evidence.changed")}</span>}
            </span>
            <CopyButton text={wholePlace(frame)} label={t("source.copy")} focused={first && index === 0} />
            {frame.line !== null && (
              <Button component="a" href={editorLink(frame)} variant="default" size="compact-xs">
                {t("source.open")}
              </Button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function wholePlace({ file, line }: Frame): string {
  return line === null ? file : `${file}:${line}`;
}

/** The address that VS Code and its kin register for themselves. */
function editorLink(frame: Frame): string {
  const path = wholePlace(frame).replaceAll("\\", "/");
  return `vscode://file${path.startsWith("/") ? "" : "/"}${encodeURI(path)}`;
}
