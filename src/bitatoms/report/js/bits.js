// Bits and integers, as bitatoms.report.explorer writes them.

function decodeBytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // faster, in newer browsers
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

// Integers of variable length: seven bits to a byte, the lowest first.
function decodeNumbers(text) {
  const numbers = [];
  let value = 0;
  let scale = 1;
  for (const byte of decodeBytes(text)) {
    value += (byte & 127) * scale;
    scale *= 128;
    if (byte < 128) {
      numbers.push(value);
      value = 0;
      scale = 1;
    }
  }
  return numbers;
}

// A matrix of bits whose rows begin at bytes, the first column in the lowest bit.
function decodeMatrix(text, nColumns) {
  return { bytes: decodeBytes(text), width: Math.ceil(nColumns / 8), nColumns };
}

function hasBit(matrix, row, column) {
  return (matrix.bytes[row * matrix.width + (column >> 3)] >> (column & 7)) & 1;
}

// The columns in which a row has ones, in ascending order.
function onesOf(matrix, row) {
  const ones = [];
  const start = row * matrix.width;
  for (let i = 0; i < matrix.width; i++) {
    for (let byte = matrix.bytes[start + i]; byte; byte &= byte - 1) ones.push(8 * i + (31 - Math.clz32(byte & -byte)));
  }
  return ones;
}
