const PATHS = {
  chevron: "M6 4l4 4-4 4",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  down: "M4 6l4 4 4-4",
  copy: "M5.500 5.500V2.500h8v8h-3M2.500 5.500h8v8h-8z",
  check: "M3 8.500l3.500 3.500L13 4.500",
  link: "M6.500 9.500l3-3M7 4.500l1.500-1.500a3 3 0 014.500 4.500L11.500 9M9 11.500L7.500 13A3 3 0 013 8.500L4.500 7",
  search: "M7 12a5 5 0 100-10 5 5 0 000 10zM10.500 10.500L14 14",
  close: "M4 4l8 8M12 4l-8 8",
  swap: "M3 5.500h10M10.500 3L13 5.500 10.500 8M13 10.500H3M5.500 8L3 10.500 5.500 13",
  pair: "M2.500 3.500h3v3h-3zM10.500 9.500h3v3h-3zM5.500 5h4a2 2 0 012 2v2.500",
  unpair: "M2.500 3.500h3v3h-3zM10.500 9.500h3v3h-3zM9.500 2.500l-3 11",
  path: "M2 8h3M11 4h3M11 12h3M5 8c3 0 3-4 6-4M5 8c3 0 3 4 6 4",
  settings: "M3 5h5M11 5h2M3 11h2M8 11h5M9.500 3.500v3M6.500 9.500v3",
  enlarge: "M9 3h4v4M13 3L8.500 7.500M7 13H3V9M3 13l4.500-4.500",
  scale: "M8 2.500v11M4.500 13.500h7M3 4.500h10M3 4.500l-1.500 4.500h3zM13 4.500l-1.500 4.500h3z",
  trash: "M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.5 9h6l.5-9",
  play: "M4.500 3l8 5-8 5z",
  pencil: "M3 13l.7-3L10.500 3.200l2.300 2.300L6 12.300z",
  save: "M8 2.500v8M5 7.500l3 3 3-3M3 11v2.500h10V11",
  upload: "M8 11V3M5 6l3-3 3 3M3 11v2.500h10V11",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1",
  moon: "M13 9.500A5.500 5.500 0 016.500 3 5.500 5.500 0 1013 9.500z",
  help: "M5.800 6a2.200 2.200 0 114 1.300C9 8.200 8 8.500 8 9.800M8 12.200v.1",
  warning: "M8 2.500L14.500 13.500h-13zM8 6.500v3.500M8 11.800v.1",
  eye: "M1.500 8S4 3.500 8 3.500 14.500 8 14.500 8 12 12.500 8 12.500 1.500 8 1.500 8zM8 6a2 2 0 100 4 2 2 0 000-4z",
  bell: "M4 11V7.500a4 4 0 018 0V11l1 1.500H3zM7 14.500h2",
  filter: "M2.500 3.500h11L9.500 8.500V13l-3-1.500v-3z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 14, turn = 0 }: { name: IconName; size?: number; turn?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      style={turn ? { transform: `rotate(${turn}deg)` } : undefined}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
