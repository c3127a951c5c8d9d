import { useState } from "react";
import { useOverflowBelow } from "../../api/dump/overflow";
import type { Unit } from "../../api/records";
import { useTranslation } from "../../texts/useTranslation";
import { TreeView } from "../../widgets/lists/TreeView";
import type { TreeModel } from "../../widgets/lists/useTree";
import { BelowMark } from "./PartMark";

interface DumpTreeProps {
  id: string;
  unit: Unit;
  tree: TreeModel;
  selected: string | null;
  /** Some call of this step and rank saw a number that is not finite. */
  notable: boolean;
  onSelect: (name: string) => void;
}

/** The modules of one dump, with what each saw of NaN and infinity. */
export function DumpTree({ id, unit, tree, selected, notable, onSelect }: DumpTreeProps) {
  const { t } = useTranslation();
  const [entries, setEntries] = useState<readonly number[]>([]);
  const below = useOverflowBelow(id, unit, entries, notable);
  return (
    <TreeView
      tree={tree}
      selected={selected}
      onSelect={onSelect}
      verdicts={false}
      label={t("tree.title")}
      onShown={setEntries}
      mark={(entry) => {
        const seen = notable ? below.get(entry.entry) : undefined;
        return seen && <BelowMark below={seen} leaf={entry.children === 0} />;
      }}
    />
  );
}
