import { Button, Modal, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { useCompare } from "../../api/changes";
import { useDumps } from "../../api/records";
import type { ComparisonOptions, Dump } from "../../api/types";
import { navigate } from "../../base/address/location";
import { rankAlike } from "../../base/comparison/alikeDumps";
import { guessSides, type Side } from "../../base/comparison/sides";
import { formatMoment } from "../../base/numbers/dates";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import { Link } from "../../widgets/basic/navigation";
import { SearchField } from "../../widgets/basic/SearchField";
import { Empty, Failure, Loading } from "../../widgets/basic/States";
import { useDebounced } from "../../widgets/basic/useDebounced";
import classes from "./CompareWith.module.css";

interface CompareWithProps {
  dump: Dump;
  opened: boolean;
  onClose: () => void;
}

/** Picks the other dump of a comparison with this one, says which is which, and starts it. */
export function CompareWith({ dump, opened, onClose }: CompareWithProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t("dump.compare.title", { name: dump.name })}
      size="lg"
      closeButtonProps={{ "aria-label": t("app.close") }}
    >
      {opened && <Picker dump={dump} />}
    </Modal>
  );
}

const AS_USUAL: ComparisonOptions = {
  policy: "default",
  fuzzy: false,
  tensors: true,
  steps: [],
  ranks: [],
  rename: [],
};

function Picker({ dump }: { dump: Dump }) {
  const { t, language } = useTranslation();
  const [text, setText] = useState("");
  const query = useDebounced(text.trim(), 200);
  const [picked, setPicked] = useState<Dump | null>(null);
  /** null: guessed from the names. */
  const [chosen, setChosen] = useState<Side | null>(null);
  const dumps = useDumps(query);
  const compare = useCompare();
  const found = rankAlike(
    dump,
    (dumps.data?.pages.flatMap((page) => page.items) ?? []).filter(
      (one) => one.status === "ready" && one.id !== dump.id,
    ),
  );
  const own = chosen ?? (picked ? guessSides(dump.name, picked.name)[0] : "target");
  const sides = picked && (own === "target" ? { target: dump, golden: picked } : { target: picked, golden: dump });
  const start = () => {
    if (!sides) return;
    compare.mutate(
      { target: sides.target.id, golden: sides.golden.id, options: AS_USUAL },
      { onSuccess: ({ id }) => navigate(`comparisons/${encodeURIComponent(id)}`) },
    );
  };
  const search = sides
    ? new URLSearchParams({ target: sides.target.id, golden: sides.golden.id, options: "1" })
    : new URLSearchParams({ [own]: dump.id, options: "1" });
  return (
    <div className={classes.body} data-testid="compare-with">
      <SearchField label={t("dump.compare.search")} text={text} onText={setText} data-autofocus />
      {dumps.error && <Failure problem={dumps.error} onRetry={() => void dumps.refetch()} />}
      {dumps.isPending && <Loading />}
      {dumps.data && found.length === 0 && (
        <Empty>{query ? t("home.nothingFound", { query }) : t("dump.compare.none")}</Empty>
      )}
      {found.length > 0 && (
        <fieldset className={classes.list} aria-label={t("dump.compare.list")}>
          {found.map((one) => (
            <label key={one.id} className={classes.choice} title={one.path}>
              <input
                type="radio"
                name="other-dump"
                checked={picked?.id === one.id}
                onChange={() => setPicked(one)}
                data-dump={one.id}
              />
              <span className={classes.name}>
                <bdi>{one.name}</bdi>
              </span>
              <span className="dim">
                {[
                  one.framework,
                  one.task,
                  t("dump.compare.calls", { count: one.nodes, total: formatCount(one.nodes) }),
                  formatMoment(one.created, language),
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
              <span className={`${classes.path} dim`}>
                <bdi>{one.path}</bdi>
              </span>
            </label>
          ))}
        </fieldset>
      )}
      <div className={classes.role}>
        <span id="compare-role">{t("dump.compare.role")}</span>
        <SegmentedControl
          size="xs"
          aria-labelledby="compare-role"
          value={own}
          onChange={(side) => setChosen(side as Side)}
          data={(["target", "golden"] as const).map((side) => ({ value: side, label: t(`dump.compare.${side}`) }))}
          data-testid="compare-role"
        />
      </div>
      <div className={classes.actions}>
        <Button size="xs" disabled={!sides} loading={compare.isPending} onClick={start} data-testid="start-compare">
          {t("dump.compare.start")}
        </Button>
        <Link to="" search={search.toString()} className={classes.options} data-testid="compare-options">
          {t("dump.compare.options")}
        </Link>
        <span className="dim" aria-live="polite" data-testid="compare-sides">
          {sides
            ? t("dump.compare.sides", { target: sides.target.name, golden: sides.golden.name })
            : found.length > 0 && t("dump.compare.pick")}
        </span>
      </div>
      {compare.error && <Failure problem={compare.error} />}
    </div>
  );
}
