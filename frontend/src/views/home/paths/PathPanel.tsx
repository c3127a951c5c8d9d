import { ActionIcon, Button, TextInput, Tooltip } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import { formatMoment } from "../../../base/numbers/dates";
import type { Phrase } from "../../../base/text/phrases";
import { say } from "../../../texts/serverTexts";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { MoreRows } from "../../../widgets/basic/MoreRows";
import { Link } from "../../../widgets/basic/navigation";
import { describeProblem, Failure } from "../../../widgets/basic/States";
import classes from "../HomeView.module.css";

/** What was started from two paths. */
export interface PathRow {
  id: string;
  name: string;
  status: "pending" | "done" | "failed" | "cancelled";
  error: unknown;
  created: string;
  summary: string | null;
  said: Phrase[] | null;
}

interface Asked {
  data: { pages: { items: readonly PathRow[] }[] } | undefined;
  error: Error | null;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  refetch: () => unknown;
  fetchNextPage: () => unknown;
}

interface PathPanelProps {
  title: string;
  hint: string;
  testId: string;
  form: ReactNode;
  list: Asked;
  /** Part of the address before an id. */
  noun: string;
  /** The button that removes a row. */
  remove: (row: PathRow) => ReactNode;
}

/** A part of the start page: something is started from paths of the server, and what was started before is listed. */
export function PathPanel({ title, hint, testId, form, list, noun, remove }: PathPanelProps) {
  const { t, language } = useTranslation();
  const rows = list.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <section className="panel" aria-labelledby={`${testId}-title`} data-testid={testId}>
      <div className={classes.listHead}>
        <h2 id={`${testId}-title`}>{title}</h2>
        <span className="dim">{hint}</span>
      </div>
      {form}
      {list.error && <Failure problem={list.error} onRetry={() => void list.refetch()} />}
      {rows.length > 0 && (
        <table className={classes.table}>
          <tbody>
            {rows.map((row) => {
              const failed = row.status === "failed" ? describeProblem(row.error).detail : null;
              return (
                <tr key={row.id} data-id={row.id}>
                  <td>
                    <Link to={`${noun}/${encodeURIComponent(row.id)}`}>
                      <bdi>{row.name}</bdi>
                    </Link>
                  </td>
                  <td>
                    <div className={classes.sub} title={failed ?? undefined}>
                      {row.summary === null ? failed : say(row.summary, row.said)}
                    </div>
                  </td>
                  <td className="dim">{t(`app.status.${row.status}`)}</td>
                  <td className="dim">{formatMoment(row.created, language)}</td>
                  <td>{remove(row)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      <MoreRows list={list} />
    </section>
  );
}

interface Removal {
  isPending: boolean;
  mutate: (id: string) => void;
}

export function RemoveButton({ row, removal }: { row: PathRow; removal: Removal }) {
  const { t } = useTranslation();
  return (
    <Tooltip label={t("app.delete")}>
      <ActionIcon
        size="sm"
        aria-label={`${t("app.delete")}: ${row.name}`}
        loading={removal.isPending}
        onClick={() => removal.mutate(row.id)}
      >
        <Icon name="trash" size={12} />
      </ActionIcon>
    </Tooltip>
  );
}

interface Field {
  label: string;
  testId: string;
}

interface PathFormProps {
  fields: readonly [Field, Field];
  /** Whether the second path may be left out. */
  optional?: boolean;
  placeholder: string;
  button: string;
  buttonId: string;
  starting: { isPending: boolean; error: Error | null };
  onStart: (first: string, second: string) => void;
}

/** Two paths of the server and a button. */
export function PathForm({
  fields,
  optional = false,
  placeholder,
  button,
  buttonId,
  starting,
  onStart,
}: PathFormProps) {
  const [paths, setPaths] = useState<readonly [string, string]>(["", ""]);
  const [first, second] = paths.map((path) => path.trim()) as [string, string];
  const ready = first !== "" && (optional || second !== "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready) onStart(first, second);
  };
  return (
    <form onSubmit={submit}>
      <div className={classes.paths}>
        {fields.map(({ label, testId }, place) => (
          <TextInput
            key={testId}
            label={label}
            placeholder={placeholder}
            value={paths[place]}
            onChange={(event) => {
              const { value } = event.currentTarget;
              setPaths((now) => (place === 0 ? [value, now[1]] : [now[0], value]));
            }}
            data-testid={testId}
          />
        ))}
        <Button type="submit" variant="default" disabled={!ready} loading={starting.isPending} data-testid={buttonId}>
          {button}
        </Button>
      </div>
      {starting.error && <Failure problem={starting.error} />}
    </form>
  );
}
