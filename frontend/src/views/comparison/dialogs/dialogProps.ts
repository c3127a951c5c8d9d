/** What a dialog gets that draws its own frame. */
export interface DialogProps {
  opened: boolean;
  onClose: () => void;
}
