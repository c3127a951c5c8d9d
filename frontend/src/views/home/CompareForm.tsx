import { ActionIcon, Button, Checkbox, FileInput, Select, TextInput, Tooltip } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { useCompare, useDumps } from "../../api/queries";
import type { ComparisonOptions } from "../../api/types";
import { navigate } from "../../base/location";
import { parseNumbers } from "../../base/moments";
import { Icon } from "../../widgets/Icon";
import { Failure } from "../../widgets/States";
import { useDebounced } from "../../widgets/useDebounced";
import classes from "./HomeView.module.css";

export interface PickedDump {
  id: string;
  name: string;
}

export interface Picked {
  target: PickedDump | null;
  golden: PickedDump | null;
}

/** Lets a button elsewhere on the page submit this form. */
export const COMPARE_FORM = "compare-form";

const MAPPINGS = ["layer_mapping", "cell_mapping", "data_mapping"] as const;
const POLICIES = ["default", "ptdbg", "msprobe"] as const;

interface Options {
  policy: string;
  fuzzy: boolean;
  statisticsOnly: boolean;
  steps: string;
  ranks: string;
  mappings: Partial<Record<(typeof MAPPINGS)[number], File | null>>;
}

const DEFAULTS: Options = {
  policy: "default",
  fuzzy: false,
  statisticsOnly: false,
  steps: "",
  ranks: "",
  mappings: {},
};

interface CompareFormProps {
  picked: Picked;
  onPick: (picked: Picked) => void;
}

export function CompareForm({ picked, onPick }: CompareFormProps) {
  const { t } = useTranslation();
  const compare = useCompare();
  const [options, setOptions] = useState(DEFAULTS);
  const [open, setOpen] = useState(false);
  const { target, golden } = picked;
  const [reference, setReference] = useState<PickedDump | null>(null);
  const numbersOk = parseNumbers(options.steps) !== null && parseNumbers(options.ranks) !== null;
  const ready = target !== null && golden !== null && numbersOk;

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!target || !golden || !numbersOk) return;
    const body = {
      target: target.id,
      golden: golden.id,
      reference: reference?.id ?? null,
      options: await toWire(options),
    };
    compare.mutate(body, { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) });
  };

  return (
    <section className={`panel ${classes.card}`} aria-labelledby="compare-title">
      <h2 className={classes.title} id="compare-title">
        {t("home.compare")}
      </h2>
      <form id={COMPARE_FORM} onSubmit={(event) => void submit(event)}>
        <div className={classes.pickers}>
          <DumpSelect
            label={t("home.target")}
            hint={t("home.targetHint")}
            testId="target"
            value={target}
            onChange={(dump) => onPick({ target: dump, golden })}
          />
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
          <DumpSelect
            label={t("home.golden")}
            hint={t("home.goldenHint")}
            testId="golden"
            value={golden}
            onChange={(dump) => onPick({ target, golden: dump })}
          />
        </div>
        <div className={classes.submit}>
          <Button type="submit" disabled={!ready} loading={compare.isPending} data-testid="compare">
            {t("home.compare")}
          </Button>
          <Button
            variant="subtle"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
            rightSection={<Icon name="down" size={12} turn={open ? 180 : 0} />}
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
      </form>
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
      {MAPPINGS.map((key) => (
        <FileInput
          key={key}
          size="xs"
          label={t(`home.mapping.${key}`)}
          placeholder={t("home.mappingPick")}
          accept=".yaml,.yml"
          clearable
          value={options.mappings[key] ?? null}
          onChange={(file) => onChange({ ...options, mappings: { ...options.mappings, [key]: file } })}
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

async function toWire(options: Options): Promise<ComparisonOptions> {
  const wire: ComparisonOptions = {
    policy: options.policy,
    fuzzy: options.fuzzy,
    tensors: !options.statisticsOnly,
    steps: parseNumbers(options.steps) ?? [],
    ranks: parseNumbers(options.ranks) ?? [],
    rename: [],
  };
  for (const key of MAPPINGS) {
    const file = options.mappings[key];
    if (file) wire[key] = await file.text();
  }
  return wire;
}

interface DumpSelectProps {
  label: string;
  hint: string;
  testId: string;
  value: PickedDump | null;
  onChange: (dump: PickedDump | null) => void;
}

/** Searches on the server, so that any number of dumps can be picked from. */
function DumpSelect({ label, hint, testId, value, onChange }: DumpSelectProps) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const query = useDebounced(text === value?.name ? "" : text, 200);
  const dumps = useDumps(query);
  const found = (dumps.data?.pages.flatMap((page) => page.items) ?? []).filter((dump) => dump.status === "ready");
  const choices: PickedDump[] = value && !found.some((dump) => dump.id === value.id) ? [value, ...found] : found;
  return (
    <Select
      label={
        <>
          {label} <span className="dim">· {hint}</span>
        </>
      }
      placeholder={t("home.pick")}
      searchable
      clearable
      nothingFoundMessage={t("home.nothingFound", { query })}
      data={choices.map((dump) => ({ value: dump.id, label: dump.name }))}
      filter={({ options }) => options}
      value={value?.id ?? null}
      onSearchChange={setText}
      onChange={(id) => {
        const dump = choices.find((one) => one.id === id);
        onChange(dump ? { id: dump.id, name: dump.name } : null);
      }}
      data-testid={testId}
    />
  );
}
