import { Button, NumberInput, Textarea, TextInput } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Sides, useCheckPlan } from "../../api/comparison/plans";
import type { ComparisonOptions, PlanPreview } from "../../api/types";
import { NO_SIZES, type PlanLayout, type Sizes, setWay, writeLayout, writeSizes } from "../../base/comparison/plan";
import { SIDES, type Side } from "../../base/comparison/sides";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { ProblemList } from "../basic/Problems";
import { Failure, Loading } from "../basic/States";
import { PlanDimensions } from "./PlanDimensions";
import { PlanDryRun } from "./PlanDryRun";
import classes from "./PlanEditor.module.css";
import { PlanRoles } from "./PlanRoles";

const DEGREES = ["tp", "cp", "ep", "pp", "vpp"] as const;

/** Finds the plan. */
export const FIND = "{}";

interface PlanEditorProps {
  sides: Sides;
  /** The other options of the comparison; they change what is matched and so what is joined. */
  options: ComparisonOptions;
  /** The plan to begin with, `FIND` to have it found. */
  text: string;
  /** Takes every text that the server has found right, as the server writes it; null while it looks at another one. */
  onChecked: (text: string | null) => void;
}

/** A plan of how ranks are joined, by sizes, by the roles of ranks, by dimensions of tensors, or as text.
 * Each change goes to the server, which completes and checks it and names faults with their place. */
export function PlanEditor({ sides, options, text, onChecked }: PlanEditorProps) {
  const { t } = useTranslation();
  const check = useCheckPlan(sides);
  const [found, setFound] = useState<PlanPreview | null>(null);
  const [draft, setDraft] = useState(text === FIND ? "" : text);
  const [sizes, setSizes] = useState({ target: NO_SIZES, golden: NO_SIZES });

  /** A change that the server still looks at: it is on the screen, and the next one is made to it. */
  const [changed, setChanged] = useState<PlanLayout | null>(null);

  const send = (plan: string) => {
    onChecked(null);
    check.mutate(plan, {
      onSuccess: (preview) => {
        setFound(preview);
        if (preview.plan !== null) setDraft(preview.plan);
      },
      onSettled: (preview) => {
        setChanged(null);
        onChecked((preview ?? found)?.plan ?? null); // where it was refused, the last good plan stands
      },
    });
  };
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    send(text);
  });

  const layout = changed ?? found?.layout ?? null;
  const change = (next: PlanLayout) => {
    setChanged(next);
    send(writeLayout(next));
  };
  return (
    <div className={classes.editor} data-testid="plan-editor" aria-busy={check.isPending}>
      {check.error && <Failure problem={check.error} />}
      {!found && check.isPending && <Loading />}
      {found && (found.reasons.length > 0 || found.problems.length > 0) && (
        <div className={classes.told}>
          <ul className={classes.reasons}>
            {found.reasons.map((reason, index) => {
              const said = found.reasons_said[index];
              return <li key={reason}>{say(reason, said && [said])}</li>;
            })}
          </ul>
          {found.problems.length > 0 && <ProblemList problems={found.problems} />}
        </div>
      )}
      <Section title={t("plan.sizes")} hint={t("plan.sizesHint")}>
        {SIDES.map((side) => (
          <SizeFields
            key={side}
            side={side}
            sizes={sizes[side]}
            onChange={(changed) => setSizes({ ...sizes, [side]: changed })}
          />
        ))}
        <Button
          variant="default"
          size="compact-xs"
          loading={check.isPending}
          onClick={() => send(writeSizes(sizes, layout))}
          data-testid="plan-lay-out"
        >
          {t("plan.layOut")}
        </Button>
      </Section>
      {layout && (
        <Section title={t("plan.roles")} hint={t("plan.rolesHint")}>
          <PlanRoles layout={layout} onChange={change} />
        </Section>
      )}
      {layout && (
        <Section title={t("plan.dimensions")} hint={t("plan.dimensionsHint")}>
          <PlanDimensions layout={layout} onChange={change} />
        </Section>
      )}
      {found?.plan && (
        <Section title={t("plan.trial")} hint={t("plan.trialHint")}>
          <PlanDryRun
            sides={sides}
            options={options}
            plan={found.plan}
            onWay={layout && ((name, way) => change(setWay(layout, name, way)))}
          />
        </Section>
      )}
      <details className={classes.section}>
        <summary>{t("plan.yaml")}</summary>
        <Textarea
          aria-label={t("plan.yaml")}
          autosize
          minRows={4}
          maxRows={16}
          value={draft}
          onChange={({ currentTarget: { value } }) => {
            setDraft(value);
            onChecked(value === found?.plan ? value : null); // what is written is not looked at yet
          }}
          styles={{ input: { fontFamily: "var(--mono)", fontSize: 11 } }}
          data-testid="plan-text"
        />
        <Button
          mt={6}
          variant="default"
          size="compact-xs"
          loading={check.isPending}
          onClick={() => send(draft.trim() === "" ? FIND : draft)}
          data-testid="plan-check"
        >
          {t("plan.check")}
        </Button>
      </details>
    </div>
  );
}

function Section({ title, hint, children }: { title: string; hint: string; children: ReactNode }) {
  return (
    <section className={classes.section} aria-label={title}>
      <h3 className={classes.title}>
        {title} <span className="dim">· {hint}</span>
      </h3>
      {children}
    </section>
  );
}

interface SizeFieldsProps {
  side: Side;
  sizes: Sizes;
  onChange: (sizes: Sizes) => void;
}

function SizeFields({ side, sizes, onChange }: SizeFieldsProps) {
  const { t } = useTranslation();
  const name = t(`comparison.${side}`);
  return (
    <div className={classes.sizes}>
      <span className={classes.side}>{name}</span>
      {DEGREES.map((degree) => (
        <NumberInput
          key={degree}
          size="xs"
          label={degree.toUpperCase()}
          aria-label={`${name} ${degree.toUpperCase()}`}
          placeholder="1"
          min={1}
          allowDecimal={false}
          hideControls
          value={sizes[degree] ?? ""}
          onChange={(value) => onChange({ ...sizes, [degree]: typeof value === "number" ? value : null })}
          data-testid={`plan-${side}-${degree}`}
        />
      ))}
      <TextInput
        label={t("plan.order")}
        aria-label={`${name} ${t("plan.order")}`}
        placeholder="tp-cp-ep-dp-pp"
        value={sizes.order}
        onChange={(event) => onChange({ ...sizes, order: event.currentTarget.value.trim() })}
      />
    </div>
  );
}
