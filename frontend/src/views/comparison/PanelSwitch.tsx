import { SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useTranslation } from "../../texts/useTranslation";

const PANELS = ["tree", "list", "evidence"] as const;
export type Panel = (typeof PANELS)[number];

/** On a narrow screen: which of the panels is shown. */
export function PanelSwitch({ panel, onPanel }: { panel: Panel; onPanel: (panel: Panel) => void }) {
  const { t } = useTranslation();
  const narrow = useMediaQuery("(max-width: 980px)", false, { getInitialValueInEffect: false });
  if (!narrow) return null; // what is hidden is measured all the same
  return (
    <SegmentedControl
      size="xs"
      fullWidth
      value={panel}
      onChange={(value) => onPanel(value as Panel)}
      data={PANELS.map((name) => ({ value: name, label: t(`comparison.panels.${name}`) }))}
    />
  );
}
