import { useTranslation } from "../../../texts/useTranslation";
import classes from "../HomeView.module.css";
import type { PickedDump, SidePicking } from "../useSides";

interface SideButtonsProps extends SidePicking {
  dump: PickedDump;
}

/** Two buttons that put a dump on a side of the comparison to make. */
export function SideButtons({ dump, picked, onPick }: SideButtonsProps) {
  const { t } = useTranslation();
  const { id, name, path } = dump;
  return (
    <span className={classes.pick}>
      {(["target", "golden"] as const).map((side) => {
        const pressed = picked[side]?.id === id;
        return (
          <button
            key={side}
            type="button"
            className={`plain ${classes.side}`}
            aria-pressed={pressed}
            aria-label={t(side === "target" ? "home.useAsTarget" : "home.useAsGolden", { name })}
            onClick={() => onPick({ ...picked, [side]: pressed ? null : { id, name, path } })}
          >
            {t(`comparison.${side}`)}
          </button>
        );
      })}
    </span>
  );
}
