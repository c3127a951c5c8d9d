/** The wanted unit, else the lowest rank of its step, else the first: an address may name a missing one. */
export function findNearestUnit<T extends { step: number; rank: number }>(
  units: readonly T[],
  step: number | null,
  rank: number | null,
): T | null {
  const ofStep = units.filter((one) => one.step === step);
  return ofStep.find((one) => one.rank === rank) ?? ofStep[0] ?? units[0] ?? null;
}
