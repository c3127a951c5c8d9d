import type { ReactNode } from "react";
import { useRules } from "../../api/records";
import { useTranslation } from "../../texts/useTranslation";
import { Hint } from "./Hint";
import classes from "./Term.module.css";

/** Words of the glossary, as the help lists them. */
export const TERMS = ["reached", "floor", "rule", "alone", "confidence"] as const;
export type TermWord = (typeof TERMS)[number];

interface TermProps {
  word: TermWord;
  /** What more there is to say of it here. */
  more?: string;
  /** Something around it has the focus, and takes it to its description. */
  still?: boolean;
  children: ReactNode;
}

/** A word that explains itself on hover, on focus, and to screen readers. */
export function Term({ word, more, still = false, children }: TermProps) {
  const { t } = useTranslation();
  const label = [more, t(`glossary.${word}`)].filter(Boolean).join("\n");
  return (
    <Hint label={label}>
      <span className={classes.term} tabIndex={still ? undefined : 0} data-term={word}>
        {children}
      </span>
    </Hint>
  );
}

/** The id of a rule, which says what the rule says. */
export function RuleTerm({ rule, children }: { rule: string; children: ReactNode }) {
  const { language } = useTranslation();
  const found = useRules().data?.find((one) => one.rule === rule);
  const said = found && (language === "zh" ? found.text_zh : found.text);
  return (
    <Term word="rule" more={said && `${rule}: ${said}`}>
      {children}
    </Term>
  );
}
