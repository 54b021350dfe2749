/** The palette of 256 colours that terminals share: 16 named colours, a cube of 216 and 24 greys. */

export type Rgb = readonly [red: number, green: number, blue: number];

/** The first colour after the 16 that every terminal draws as it likes. */
export const FIRST_FIXED_COLOUR = 16;
const FIRST_GREY = 232;
const CUBE_LEVELS = [0, 95, 135, 175, 215, 255];

/** Returns what terminals draw for a colour from 16 to 255. */
export function rgbOf(colour: number): Rgb {
  if (colour >= FIRST_GREY) {
    const level = 8 + (colour - FIRST_GREY) * 10;
    return [level, level, level];
  }
  const index = colour - FIRST_FIXED_COLOUR;
  return [CUBE_LEVELS[Math.floor(index / 36)]!, CUBE_LEVELS[Math.floor(index / 6) % 6]!, CUBE_LEVELS[index % 6]!];
}

const distance = (one: Rgb, other: Rgb): number => one.reduce((sum, value, at) => sum + (value - other[at]!) ** 2, 0);

function nearestLevel(value: number): number {
  let nearest = 0;
  for (const [index, level] of CUBE_LEVELS.entries())
    if (Math.abs(level - value) < Math.abs(CUBE_LEVELS[nearest]! - value)) nearest = index;
  return nearest;
}

/** Returns the colour of the cube or the grey, from 16 to 255, that is nearest to red, green and blue from 0 to 255. */
export function nearestColour(rgb: Rgb): number {
  const [red, green, blue] = rgb;
  const inCube = FIRST_FIXED_COLOUR + 36 * nearestLevel(red) + 6 * nearestLevel(green) + nearestLevel(blue);
  const step = Math.round(((red + green + blue) / 3 - 8) / 10);
  const grey = FIRST_GREY + Math.min(23, Math.max(0, step));
  return distance(rgbOf(grey), rgb) < distance(rgbOf(inCube), rgb) ? grey : inCube;
}
