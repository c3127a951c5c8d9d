import { Button, Progress } from "@mantine/core";
import { useEffect, useRef } from "react";
import { useRegisterDump } from "../../../api/changes";
import { useDump } from "../../../api/records";
import type { Side } from "../../../base/comparison/sides";
import { fileName } from "../../../base/text/serverPaths";
import { readInput } from "../../../base/upload/pickedFiles";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Failure } from "../../../widgets/basic/States";
import type { PickedDump, Sides } from "../useSides";
import { DumpSelect } from "./DumpSelect";
import classes from "./SideZone.module.css";

/** One side of the comparison to make: files are dropped on it, a dump is picked or the path of one pasted. */
export function SideZone({ side, sides }: { side: Side; sides: Sides }) {
  const { t } = useTranslation();
  const folder = useRef<HTMLInputElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const register = useRegisterDump();
  const line = sides.arriving[side];
  const picked = sides.picked[side];
  const refused = sides.refused[side];
  const take = (input: HTMLInputElement) => {
    sides.take(readInput(input.files), side);
    input.value = "";
  };
  const read = (path: string) =>
    register.mutate(path, { onSuccess: ({ id }) => sides.bring(side, { id, name: fileName(path), path }) });
  return (
    <div
      className={classes.zone}
      data-side={side}
      data-refused={refused !== null || undefined}
      data-testid={`zone-${side}`}
    >
      <DumpSelect
        label={t(`home.${side}`)}
        hint={t(side === "target" ? "home.targetHint" : "home.goldenHint")}
        testId={side}
        value={picked}
        onChange={(dump) => sides.pick({ ...sides.picked, [side]: dump })}
        onPath={read}
      />
      <div className={classes.bring}>
        {line ? (
          <>
            <span className={classes.name}>{t("home.uploading", { name: line.bundle.name })}</span>
            <Progress
              className={classes.progress}
              value={line.bundle.bytes === 0 ? 0 : (line.progress.sent / line.bundle.bytes) * 100}
              size="sm"
              aria-label={line.bundle.name}
            />
          </>
        ) : (
          <>
            <Icon name="upload" />
            <span>{t("home.dropSide")}</span>
            <Button
              variant="subtle"
              size="compact-xs"
              aria-label={`${t(`home.${side}`)}: ${t("home.folder")}`}
              onClick={() => folder.current?.click()}
            >
              {t("home.folder")}
            </Button>
            <Button
              variant="subtle"
              size="compact-xs"
              aria-label={`${t(`home.${side}`)}: ${t("home.files")}`}
              onClick={() => files.current?.click()}
            >
              {t("home.files")}
            </Button>
          </>
        )}
        <input
          ref={folder}
          type="file"
          hidden
          multiple
          {...{ webkitdirectory: "" }}
          aria-label={`${t(`home.${side}`)}: ${t("home.chooseFolder")}`}
          onChange={(event) => take(event.currentTarget)}
          data-testid={`${side}-folder-input`}
        />
        <input
          ref={files}
          type="file"
          hidden
          multiple
          aria-label={`${t(`home.${side}`)}: ${t("home.chooseFiles")}`}
          onChange={(event) => take(event.currentTarget)}
          data-testid={`${side}-file-input`}
        />
      </div>
      {register.error && <Failure problem={register.error} />}
      {picked && <PickedDumpWatch key={picked.id} side={side} dump={picked} sides={sides} />}
      {refused && (
        <Failure
          title={t(refused.arrived ? "home.uploadUnreadable" : "home.uploadFailed", { name: refused.name })}
          problem={refused.problem}
        />
      )}
    </div>
  );
}

/** A dump is brought before it is read: where that fails, its side is empty again and says why. */
function PickedDumpWatch({ side, dump, sides }: { side: Side; dump: PickedDump; sides: Sides }) {
  const { data } = useDump(dump.id);
  const { refuse } = sides;
  useEffect(() => {
    if (data?.status === "failed") refuse(side, { name: dump.name, arrived: true, problem: data.error });
  }, [data, side, dump.name, refuse]);
  return null;
}
