/** Sentences that came as data: the id of a template and what goes into it. */
export interface Phrase {
  id: string;
  values: Record<string, number | string | Phrase[]>;
}

/** The sentences in the language of `templates`, an enumeration joined by `comma`; null where a template is missing. */
export function renderPhrases(
  phrases: readonly Phrase[],
  templates: Readonly<Record<string, string>>,
  comma: string,
): string | null {
  let whole = "";
  for (const phrase of phrases) {
    const template = templateOf(phrase, templates);
    if (template === undefined) return null;
    const filled: Record<string, string> = {};
    for (const [name, value] of Object.entries(phrase.values)) {
      if (!Array.isArray(value)) {
        filled[name] = String(value);
        continue;
      }
      const parts = value.map((part) => renderPhrases([part], templates, comma));
      if (parts.includes(null)) return null;
      filled[name] = parts.join(comma);
    }
    whole += template.replace(/\{\{|\}\}|\{(\w+)\}/g, (place, name?: string) =>
      name === undefined ? place.slice(1) : (filled[name] ?? place),
    );
  }
  return whole;
}

/** A sentence that counts has two templates, for one and for other counts. */
function templateOf(phrase: Phrase, templates: Readonly<Record<string, string>>): string | undefined {
  return templates[phrase.id] ?? templates[`${phrase.id}_${phrase.values.count === 1 ? "one" : "other"}`];
}

/** Whether a value that came over the wire is a list of phrases. */
export function isPhrases(value: unknown): value is Phrase[] {
  return Array.isArray(value) && value.every((one) => typeof one?.id === "string" && typeof one?.values === "object");
}
