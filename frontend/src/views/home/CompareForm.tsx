import { ActionIcon, Button, Checkbox, FileInput, Select, Textarea, TextInput, Tooltip } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { useCompare } from "../../api/changes";
import { usePreview } from "../../api/matches";
import { useDumps } from "../../api/queries";
import type { CompareRequest, ComparisonOptions, MatchingPreview } from "../../api/types";
import { navigate } from "../../base/location";
import { parseNumbers } from "../../base/moments";
import { formatCount } from "../../base/numbers";
import { Icon } from "../../widgets/Icon";
import { LeftoverChip } from "../../widgets/Mark";
import { MiddleName } from "../../widgets/MiddleName";
import { Failure } from "../../widgets/States";
import { useDebounced } from "../../widgets/useDebounced";
import classes from "./HomeView.module.css";

export interface PickedDump {
  id: string;
  name: string;
  /** Where it lies: dumps are often all called the same. */
  path: string;
}

export interface Picked {
  target: PickedDump | null;
  golden: PickedDump | null;
}

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
}

const DEFAULTS: Options = {
  policy: "default",
  fuzzy: false,
  statisticsOnly: false,
  steps: "",
  ranks: "",
  rename: "",
  files: {},
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
            vars={() => ({ root: { "--button-hover": "var(--hover)" } })}
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
        {open && (
          <TryMatching
            dumps={numbersOk && target && golden ? { target: target.id, golden: golden.id } : null}
            options={options}
          />
        )}
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

/** What the options would match, said before anything is compared. */
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
    preview.mutate({ ...dumps, options: await toWire(options) });
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
      {preview.data && <Tried found={preview.data} />}
    </div>
  );
}

function fileKeys({ files }: Options): string[] {
  return FILES.map((key) => `${files[key]?.name}/${files[key]?.lastModified}`);
}

const SHOWN_LEFT = 30;

function Tried({ found }: { found: MatchingPreview }) {
  const { t, i18n } = useTranslation();
  return (
    <div className={classes.tried} data-testid="tried">
      <p>
        <strong>{t("home.tried.pairs", { count: found.pairs, total: formatCount(found.pairs) })}</strong>{" "}
        {Object.entries(found.methods)
          .map(
            ([word, count]) =>
              `${formatCount(count)} ${i18n.exists(`match.${word}`) ? t(`match.${word as "exact"}`) : word}`,
          )
          .join(" · ")}{" "}
        <span className="dim">({t("home.tried.unit", { step: found.step, rank: found.rank })})</span>
      </p>
      {found.rules.length > 0 && (
        <table className={classes.rules}>
          <thead>
            <tr>
              <th className={classes.ruleHead}>{t("home.tried.rule")}</th>
              <th className={classes.ruleHead}>{t("home.tried.labels")}</th>
              <th className={classes.ruleHead}>{t("home.tried.made")}</th>
            </tr>
          </thead>
          <tbody>
            {found.rules.map((rule, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a rule may stand there twice
              <tr key={index} data-idle={rule.pairs === 0 || undefined}>
                <td className={`mono ${classes.ruleCell}`}>{rule.rule}</td>
                <td className={`num ${classes.ruleCell}`}>{formatCount(rule.labels)}</td>
                <td className={`num ${classes.ruleCell}`}>
                  {rule.labels === 0 ? t("home.tried.idle") : formatCount(rule.pairs)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p>
        {found.left_count === 0
          ? t("home.tried.allPaired")
          : t("home.tried.left", { count: found.left_count, total: formatCount(found.left_count) })}
        {found.inside > 0 && `, ${t("home.tried.inside", { total: formatCount(found.inside) })}`}
      </p>
      {found.left.length > 0 && (
        <ul className={classes.left}>
          {found.left.slice(0, SHOWN_LEFT).map((call) => (
            <li key={`${call.side}/${call.name}`}>
              <MiddleName name={call.name} />
              <LeftoverChip cause={call.leftover} side={call.side} />
            </li>
          ))}
        </ul>
      )}
      {found.left_count > SHOWN_LEFT && (
        <p className="dim">
          {t("home.tried.shown", { shown: formatCount(SHOWN_LEFT), total: formatCount(found.left_count) })}
        </p>
      )}
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
    rename: options.rename
      .split("\n")
      .map((rule) => rule.trim())
      .filter((rule) => rule !== ""),
  };
  for (const key of FILES) {
    const file = options.files[key];
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
      renderOption={({ option }) => (
        <div className={classes.choice}>
          <bdi>{option.label}</bdi>
          <div className={classes.sub}>
            <bdi>{choices.find((dump) => dump.id === option.value)?.path}</bdi>
          </div>
        </div>
      )}
      title={value?.path}
      filter={({ options }) => options}
      value={value?.id ?? null}
      onSearchChange={setText}
      onChange={(id) => {
        const dump = choices.find((one) => one.id === id);
        onChange(dump ? { id: dump.id, name: dump.name, path: dump.path } : null);
      }}
      data-testid={testId}
    />
  );
}
