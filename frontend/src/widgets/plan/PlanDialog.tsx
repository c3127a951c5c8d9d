import { Button, FileButton, Modal } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Sides } from "../../api/comparison/plans";
import type { ComparisonOptions } from "../../api/types";
import { useTranslation } from "../../texts/useTranslation";
import { downloadText } from "../basic/download";
import { FIND, PlanEditor } from "./PlanEditor";
import classes from "./PlanEditor.module.css";

interface PlanDialogProps {
  opened: boolean;
  onClose: () => void;
  sides: Sides;
  options: ComparisonOptions;
  /** The plan to begin with; null to have it found. */
  text: string | null;
  /** Buttons for a plan that the server accepted; null while there is none, and while a change of it is looked at. */
  actions: (plan: string | null) => ReactNode;
}

/** The editor of a plan over the screen, with the file that `--plan` takes, in and out. */
export function PlanDialog({ opened, onClose, sides, options, text, actions }: PlanDialogProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t("plan.edit")}
      size={1040}
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      {opened && <Edited sides={sides} options={options} text={text} actions={actions} />}
    </Modal>
  );
}

function Edited({ sides, options, text, actions }: Omit<PlanDialogProps, "opened" | "onClose">) {
  const { t } = useTranslation();
  const [begun, setBegun] = useState({ text: text ?? FIND, count: 0 });
  const [plan, setPlan] = useState<string | null>(null);
  const take = async (file: File | null) => {
    if (!file) return;
    const given = await file.text();
    setBegun(({ count }) => ({ text: given, count: count + 1 }));
  };
  return (
    <>
      <PlanEditor key={begun.count} sides={sides} options={options} text={begun.text} onChecked={setPlan} />
      <div className={classes.actions}>
        {actions(plan)}
        <Button
          variant="default"
          disabled={plan === null}
          onClick={() => plan !== null && downloadText("plan.yaml", plan, "application/yaml")}
          data-testid="plan-download"
        >
          {t("plan.download")}
        </Button>
        <FileButton
          accept=".yaml,.yml,.json"
          onChange={(file) => void take(file)}
          inputProps={{ "aria-label": t("plan.fromFile") }}
        >
          {(props) => (
            <Button variant="default" {...props}>
              {t("plan.fromFile")}
            </Button>
          )}
        </FileButton>
      </div>
    </>
  );
}
