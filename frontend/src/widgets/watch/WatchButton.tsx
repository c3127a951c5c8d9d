import { ActionIcon, Button, Group, Modal, SegmentedControl, Select } from "@mantine/core";
import { type FormEvent, type MouseEvent, useState } from "react";
import { useDumps } from "../../api/records";
import type { Dump, WatchSide } from "../../api/types";
import { useWatch } from "../../api/watches";
import { guessSides } from "../../base/comparison/sides";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import { Failure } from "../basic/States";
import { useDebounced } from "../basic/useDebounced";
import { useOpener } from "../late/useOpener";
import classes from "./Watch.module.css";

/** Begins the watch on the folder of a dump, or changes what it is compared with. An uploaded dump has no folder that grows. */
export function WatchButton({ dump, words = false }: { dump: Dump; words?: boolean }) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState(false);
  const remember = useOpener(opened);
  if (dump.uploaded) return null;
  const watch = dump.watch ?? null;
  const label = t(watch ? "watch.settings" : "watch.startOf", { name: dump.name });
  const open = (click: MouseEvent<HTMLElement>) => {
    remember(click);
    setOpened(true);
  };
  return (
    <>
      {words ? (
        <Button variant="default" size="compact-xs" onClick={open} data-testid="open-watch">
          {t("watch.start")}
        </Button>
      ) : (
        <ActionIcon
          size="sm"
          title={watch ? label : t("watch.start")}
          aria-label={label}
          variant={watch ? "light" : undefined}
          onClick={open}
          data-testid="open-watch"
        >
          <Icon name="eye" size={13} />
        </ActionIcon>
      )}
      {opened && (
        <Modal
          opened
          onClose={() => setOpened(false)}
          title={t("watch.title", { name: dump.name })}
          closeButtonProps={{ "aria-label": t("app.close") }}
          styles={{ title: { overflowWrap: "anywhere" } }}
        >
          <WatchForm dump={dump} onClose={() => setOpened(false)} />
        </Modal>
      )}
    </>
  );
}

interface Partner {
  id: string;
  name: string;
}

function WatchForm({ dump, onClose }: { dump: Dump; onClose: () => void }) {
  const { t } = useTranslation();
  const watch = dump.watch ?? null;
  const [partner, setPartner] = useState<Partner | null>(
    watch?.partner ? { id: watch.partner, name: watch.partner_name ?? "" } : null,
  );
  /** null: guessed from the names. */
  const [chosen, setChosen] = useState<WatchSide | null>(watch?.partner ? watch.side : null);
  const [text, setText] = useState("");
  const query = useDebounced(text === partner?.name ? "" : text, 200);
  const dumps = useDumps(query);
  const save = useWatch(dump.id, watch);
  const found = (dumps.data?.pages.flatMap((page) => page.items) ?? []).filter(
    (one) => one.status !== "failed" && one.id !== dump.id,
  );
  const choices: { id: string; name: string; path?: string }[] =
    partner && !found.some((one) => one.id === partner.id) ? [partner, ...found] : found;
  const side = chosen ?? (partner ? guessSides(dump.name, partner.name)[0] : "target");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ partner: partner?.id ?? null, side }, { onSuccess: onClose });
  };
  return (
    <form onSubmit={submit} className={classes.form} data-testid="watch-form">
      <p>{t("watch.explain")}</p>
      <p className={`${classes.path} mono`}>{dump.path}</p>
      <Select
        label={t("watch.partner")}
        aria-describedby="watch-partner-hint"
        placeholder={t("watch.noPartner")}
        searchable
        clearable
        nothingFoundMessage={t("home.nothingFound", { query })}
        data={choices.map((one) => ({ value: one.id, label: one.name }))}
        filter={({ options }) => options}
        renderOption={({ option }) => (
          <div>
            <bdi>{option.label}</bdi>
            <div className={classes.path}>{choices.find((one) => one.id === option.value)?.path}</div>
          </div>
        )}
        value={partner?.id ?? null}
        onSearchChange={setText}
        onChange={(id) => {
          const one = choices.find((other) => other.id === id);
          setPartner(one ? { id: one.id, name: one.name } : null);
        }}
        data-testid="watch-partner"
      />
      <p id="watch-partner-hint" className={classes.hint}>
        {t("watch.partnerHint")}
      </p>
      {partner && (
        <div className={classes.role}>
          <span id="watch-side">{t("watch.side", { name: dump.name })}</span>
          <SegmentedControl
            size="xs"
            aria-labelledby="watch-side"
            value={side}
            onChange={(value) => setChosen(value as WatchSide)}
            data={(["target", "golden"] as const).map((one) => ({ value: one, label: t(`comparison.${one}`) }))}
          />
        </div>
      )}
      {save.error && <Failure problem={save.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {t("app.cancel")}
        </Button>
        <Button type="submit" loading={save.isPending} data-testid="begin-watch">
          {t(watch ? "watch.change" : "watch.begin")}
        </Button>
      </Group>
    </form>
  );
}
