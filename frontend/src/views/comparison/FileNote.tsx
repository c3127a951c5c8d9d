import { contents } from "../../api/file/contents";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./ComparisonView.module.css";

/** What a page in a file holds, and what it does not hold. */
export function FileNote() {
  const { t } = useTranslation();
  const { places, units, calls, made, version } = contents();
  const held = places.reduce((sum, place) => sum + place.calls.length, 0);
  const of = { held: formatCount(held), total: formatCount(calls), left: formatCount(calls - held) };
  const words = [t(held < calls ? "file.note" : "file.noteAll", of)];
  if (places.length < units) words.push(t("file.places", { here: places.length, all: formatCount(units) }));
  words.push(t("file.rest"));
  const date = new Date(made).toLocaleString();
  return (
    <p
      className={classes.fileNote}
      title={t("file.markHint", { made: date, version })}
      data-screen
      data-testid="file-note"
    >
      <strong>{t("file.mark")}</strong> {words.join(" ")}
    </p>
  );
}
