import { ActionIcon, Button, Checkbox, FileInput, Select, Textarea, TextInput, Tooltip } from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useCompare } from "../../../api/changes";
import { usePreview } from "../../../api/comparison/matches";
import type { CompareRequest, ComparisonOptions } from "../../../api/types";
import { navigate } from "../../../base/address/location";
import { parseNumbers } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { useLocation } from "../../../widgets/basic/navigation";
import { Failure } from "../../../widgets/basic/States";
import { PlanDialog } from "../../../widgets/plan/PlanDialog";
import classes from "../HomeView.module.css";
import type { PickedDump, PickedSides, Sides } from "../useSides";
import { DumpSelect } from "./DumpSelect";
import { MatchingDryRun } from "./MatchingDryRun";
import { SideZone } from "./SideZone";

/** Lets a button elsewhere on the page submit this form. */
export const COMPARE_FORM = "compare-form";

const FILES = ["layer_mapping", "cell_mapping", "data_mapping", "fusion", "matches"] as const;
const POLICIES = ["default", "ptdbg", "msprobe"] as const;

interface Options {
  policy: string;
  fuzzy: boolean;
  statisticsOnly: boolean;
  steps: string;
  ranks: string;
  rename: string;
  files: Partial<Record<(typeof FILES)[number], File | null>>;
  /** How ranks are joined, as text, by the pair of dumps that it was made for; none: only where their numbers differ. */
  plans: Readonly<Record<string, string>>;
}

const DEFAULTS: Options = {
  policy: "default",
  fuzzy: false,
  statisticsOnly: false,
  steps: "",
  ranks: "",
  rename: "",
  files: {},
  plans: {},
};

interface CompareFormProps {
  sides: Sides;
}

export function CompareForm({ sides }: CompareFormProps) {
  const { picked, pick: onPick } = sides;
  const { t } = useTranslation();
  const compare = useCompare();
  const [options, setOptions] = useState(DEFAULTS);
  const asked = new URLSearchParams(useLocation().search).has("options");
  const [open, setOpen] = useState(asked);
  const { target, golden } = picked;
  const dumps = target && golden ? { target: target.id, golden: golden.id } : null;
  const [reference, setReference] = useState<PickedDump | null>(null);
  const numbersOk = parseNumbers(options.steps) !== null && parseNumbers(options.ranks) !== null;
  const ready = target !== null && golden !== null && numbersOk;

  const start = async () => {
    if (!target || !golden || !numbersOk) return;
    const body = {
      target: target.id,
      golden: golden.id,
      reference: reference?.id ?? null,
      options: await toWire(options, planKey(picked)),
    };
    compare.mutate(body, { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) });
  };

  // Starts at once when the user brought both dumps, unless the options are open.
  const latest = useRef(start);
  latest.current = start;
  useEffect(() => {
    if (!sides.brought) return;
    sides.settle();
    if (!open) void latest.current();
  }, [sides.brought, sides.settle, open]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    void start();
  };

  return (
    <section className={`panel ${classes.card}`} aria-labelledby="compare-title">
      <h2 className={classes.title} id="compare-title">
        {t("home.compare")}
      </h2>
      <form id={COMPARE_FORM} onSubmit={submit}>
        <div className={classes.pickers}>
          <SideZone side="target" sides={sides} />
          <Tooltip label={t("home.swap")}>
            <ActionIcon
              mb={2}
              aria-label={t("home.swap")}
              onClick={() => onPick({ target: golden, golden: target })}
              disabled={!target && !golden}
            >
              <Icon name="swap" />
            </ActionIcon>
          </Tooltip>
          <SideZone side="golden" sides={sides} />
        </div>
        <div className={classes.submit}>
          <Button type="submit" disabled={!ready} loading={compare.isPending} data-testid="compare">
            {t("home.compare")}
          </Button>
          <Button
            variant="subtle"
            vars={() => ({ root: { "--button-hover": "var(--hover)" } })}
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            rightSection={<Icon name="down" size={12} turn={open ? 180 : 0} />}
            data-testid="options"
          >
            {t("home.options")}
          </Button>
          {target && golden && target.id === golden.id && <span className="dim">{t("home.same")}</span>}
        </div>
        {open && (
          <div className={classes.reference}>
            <DumpSelect
              label={t("reference.title")}
              hint={t("reference.hint")}
              testId="reference"
              value={reference}
              onChange={setReference}
            />
          </div>
        )}
        {open && <OptionFields options={options} onChange={setOptions} />}
        {open && <TryMatching dumps={numbersOk ? dumps : null} options={options} />}
      </form>
      {open && <PlanField dumps={dumps} place={planKey(picked)} options={options} onChange={setOptions} />}
      {compare.error && <Failure problem={compare.error} />}
    </section>
  );
}

function OptionFields({ options, onChange }: { options: Options; onChange: (options: Options) => void }) {
  const { t } = useTranslation();
  const numbers = (key: "steps" | "ranks") => (
    <TextInput
      label={t(`home.${key}`)}
      placeholder={t("home.numbersHint")}
      value={options[key]}
      error={parseNumbers(options[key]) === null}
      onChange={(event) => onChange({ ...options, [key]: event.currentTarget.value })}
    />
  );
  return (
    <div className={classes.options}>
      <Select
        label={t("comparison.policy")}
        allowDeselect={false}
        data={POLICIES.map((name) => ({ value: name as string, label: t(`comparison.policies.${name}`) }))}
        value={options.policy}
        onChange={(policy) => policy && onChange({ ...options, policy })}
      />
      {numbers("steps")}
      {numbers("ranks")}
      <Textarea
        size="xs"
        className={classes.wide}
        label={t("home.rename")}
        placeholder={t("home.renameHint")}
        title={t("home.renameHint")}
        autosize
        minRows={1}
        maxRows={8}
        value={options.rename}
        onChange={(event) => onChange({ ...options, rename: event.currentTarget.value })}
        styles={{ input: { fontFamily: "var(--mono)" } }}
        data-testid="rename-rules"
      />
      {FILES.map((key) => (
        <FileInput
          key={key}
          size="xs"
          label={key === "fusion" || key === "matches" ? t(`home.${key}`) : t(`home.mapping.${key}`)}
          placeholder={t("home.mappingPick")}
          accept=".yaml,.yml"
          clearable
          styles={{ placeholder: { color: "var(--ink-2)" } }}
          value={options.files[key] ?? null}
          onChange={(file) => onChange({ ...options, files: { ...options.files, [key]: file } })}
        />
      ))}
      <Checkbox
        className={classes.wide}
        label={t("home.fuzzy")}
        checked={options.fuzzy}
        onChange={(event) => onChange({ ...options, fuzzy: event.currentTarget.checked })}
      />
      <Checkbox
        className={classes.wide}
        label={t("home.statisticsOnly")}
        checked={options.statisticsOnly}
        onChange={(event) => onChange({ ...options, statisticsOnly: event.currentTarget.checked })}
      />
    </div>
  );
}

interface PlanFieldProps {
  dumps: { target: string; golden: string } | null;
  /** Of these dumps among the plans. */
  place: string;
  options: Options;
  onChange: (options: Options) => void;
}

/** The plan by which ranks are joined, found or edited before anything is compared. Outside the form: Enter in its fields
 * compares nothing. */
function PlanField({ dumps, place, options, onChange }: PlanFieldProps) {
  const { t } = useTranslation();
  const chosen = options.plans[place] ?? null;
  const choose = (plan: string | null) => {
    const { [place]: _, ...others } = options.plans;
    onChange({ ...options, plans: plan === null ? others : { ...others, [place]: plan } });
  };
  const [wire, setWire] = useState<ComparisonOptions | null>(null);
  return (
    <div className={classes.tryMatching}>
      <Button
        variant="default"
        size="compact-xs"
        disabled={!dumps}
        onClick={() => void toWire(options, null).then(setWire)}
        data-testid="plan-open"
      >
        {t("plan.edit")}
      </Button>{" "}
      {chosen === null ? (
        <span className="dim">{t("plan.chosenHint")}</span>
      ) : (
        <>
          <span data-testid="plan-chosen">{t("plan.chosenAny")}</span>{" "}
          <Button variant="subtle" size="compact-xs" onClick={() => choose(null)}>
            {t("plan.drop")}
          </Button>
        </>
      )}
      {dumps && wire && (
        <PlanDialog
          opened
          onClose={() => setWire(null)}
          sides={dumps}
          options={wire}
          text={chosen}
          actions={(plan) => (
            <Button
              disabled={plan === null}
              onClick={() => {
                choose(plan);
                setWire(null);
              }}
              data-testid="plan-use"
            >
              {t("plan.use")}
            </Button>
          )}
        />
      )}
    </div>
  );
}

/** Shows what the options would match, before anything is compared. */
function TryMatching({
  dumps,
  options,
}: {
  dumps: Pick<CompareRequest, "target" | "golden"> | null;
  options: Options;
}) {
  const { t } = useTranslation();
  const preview = usePreview();
  const [tried, setTried] = useState<string | null>(null);
  const now = JSON.stringify([dumps, options.rename, options.fuzzy, options.steps, options.ranks, fileKeys(options)]);
  const start = async () => {
    if (!dumps) return;
    setTried(now);
    preview.mutate({ ...dumps, options: await toWire(options, null) });
  };
  return (
    <div className={classes.tryMatching}>
      <Button
        variant="default"
        size="compact-xs"
        disabled={!dumps}
        loading={preview.isPending}
        onClick={() => void start()}
        data-testid="try-matching"
      >
        {t("home.tryMatching")}
      </Button>{" "}
      <span className="dim">{tried !== null && tried !== now ? t("home.tried.stale") : t("home.tryHint")}</span>
      {preview.error && <Failure problem={preview.error} />}
      {preview.data && <MatchingDryRun found={preview.data} />}
    </div>
  );
}

function fileKeys({ files }: Options): string[] {
  return FILES.map((key) => `${files[key]?.name}/${files[key]?.lastModified}`);
}

/** Key of the plan of two dumps; a plan made for other dumps does not fit. */
function planKey({ target, golden }: PickedSides): string {
  return `${target?.id} ${golden?.id}`;
}

async function toWire(options: Options, place: string | null): Promise<ComparisonOptions> {
  const wire: ComparisonOptions = {
    policy: options.policy,
    fuzzy: options.fuzzy,
    tensors: !options.statisticsOnly,
    steps: parseNumbers(options.steps) ?? [],
    ranks: parseNumbers(options.ranks) ?? [],
    rename: options.rename
      .split("\n")
      .map((rule) => rule.trim())
      .filter((rule) => rule !== ""),
    parallel: (place === null ? null : options.plans[place]) ?? null,
  };
  for (const key of FILES) {
    const file = options.files[key];
    if (file) wire[key] = await file.text();
  }
  return wire;
}
