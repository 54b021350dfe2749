/** Files that are imported as texts. */

declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/time.js" {
  const text: string;
  export default text;
}
declare module "*/copy.js" {
  const text: string;
  export default text;
}
declare module "*/keys.js" {
  const text: string;
  export default text;
}
declare module "*/log.js" {
  const text: string;
  export default text;
}
declare module "*/comparison.js" {
  const text: string;
  export default text;
}
declare module "*/live.js" {
  const text: string;
  export default text;
}
