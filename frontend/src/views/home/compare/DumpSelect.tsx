import { Select } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { useDumps } from "../../../api/records";
import { isPath } from "../../../base/text/serverPaths";
import { useTranslation } from "../../../texts/useTranslation";
import { useDebounced } from "../../../widgets/basic/useDebounced";
import classes from "../HomeView.module.css";
import type { PickedDump } from "../useSides";
import { DumpFacts } from "./DumpFacts";

interface DumpSelectProps {
  label: string;
  hint: string;
  testId: string;
  value: PickedDump | null;
  onChange: (dump: PickedDump | null) => void;
  /** A path on the server was pasted; none: paths are not taken. */
  onPath?: (path: string) => void;
}

/** Begins the value of the choice that is a path. */
const PATH = "path:";

/** Searches on the server, so that any number of dumps can be picked from. */
export function DumpSelect({ label, hint, testId, value, onChange, onPath }: DumpSelectProps) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const query = useDebounced(text === value?.name ? "" : text, 200);
  const dumps = useDumps(query);
  const found = (dumps.data?.pages.flatMap((page) => page.items) ?? []).filter((dump) => dump.status === "ready");
  const choices: PickedDump[] = value && !found.some((dump) => dump.id === value.id) ? [value, ...found] : found;
  const pasted = onPath && isPath(text) && text !== value?.name ? text.trim() : null;
  // The list marks a choice by its place, which a late answer moves: a pasted path needs no mark.
  const enter = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || pasted === null || event.nativeEvent.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    (event.target as HTMLElement).blur();
    onPath?.(pasted);
  };
  return (
    <div onKeyDownCapture={enter}>
      <Select
        label={
          <>
            {label} <span className="dim">· {hint}</span>
          </>
        }
        placeholder={t(onPath ? "home.pickOrPaste" : "home.pick")}
        searchable
        clearable
        nothingFoundMessage={t("home.nothingFound", { query })}
        data={[
          ...(pasted === null ? [] : [{ value: PATH, label: pasted }]),
          ...choices.map((dump) => ({ value: dump.id, label: dump.name })),
        ]}
        selectFirstOptionOnChange={pasted !== null}
        renderOption={({ option }) => (
          <div className={classes.choice}>
            <bdi>{option.label}</bdi>
            <div className={classes.sub}>
              {option.value === PATH && t("home.readPath")}
              <bdi>{choices.find((dump) => dump.id === option.value)?.path}</bdi>
            </div>
          </div>
        )}
        title={value?.path}
        filter={({ options }) => options}
        value={value?.id ?? null}
        onSearchChange={setText}
        onChange={(id) => {
          if (id === PATH) {
            if (pasted !== null) onPath?.(pasted);
            return;
          }
          const dump = choices.find((one) => one.id === id);
          onChange(dump ? { id: dump.id, name: dump.name, path: dump.path } : null);
        }}
        data-testid={testId}
      />
      {value && <DumpFacts id={value.id} />}
    </div>
  );
}
