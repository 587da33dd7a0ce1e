// SPDX-License-Identifier: MIT
//
// guess.js: guesses the token type of a file without a header, with a reason. The rules are those
// of `iron sniff`: the widest type whose upper parts look like ids of some vocabulary. The page
// shows the guess with its reason, and the user decides.

import {count, counted} from "./text.js";

export const WIDTHS = {
  u8: 1,
  u16: 2,
  u32: 4,
  i32: 4,
  i64: 8
};
const SMALL = 16;  // upper halves of ids below 2^20

const LONG_NAMES = {
  uint8: "u8",
  uint16: "u16",
  uint32: "u32",
  int32: "i32",
  int64: "i64"
};

// The type in the file name (tokens.u16, train_uint16.bin), or null.
export function dtypeOfName(name) {
  const found =
    /(?:^|[._-])(u8|u16|u32|i32|i64|uint8|uint16|uint32|int32|int64)(?=[._-]|$)/i.exec(name);
  const word = found && found[1].toLowerCase();
  return word && (LONG_NAMES[word] || word);
}

function wordsOf(bytes) {
  const whole = bytes.slice(0, bytes.length - bytes.length % 4);
  return new Uint32Array(whole.buffer);
}

// Valid UTF-8 without control characters. A sample's end may be inside a character.
function isText(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", {fatal: true}).decode(bytes, {stream: true});
  } catch {
    return false;
  }
  return text.length > 0 && !/[\0-\x08\x0b\x0e-\x1f\x7f]/.test(text);
}

function looksLikeI64(words, size) {
  let zero = 0, negative = 0;
  const values = words.length >> 1;
  for (let k = 0; k < values; k++) {
    zero += words[2 * k + 1] === 0;
    negative += words[2 * k + 1] === 0xffffffff;
  }
  if (size % 8 || !values || zero + negative < values || negative * 2 > values) return null;
  const but = negative ? `; ${counted(negative, "negative value")} would be refused` : "";
  return `as i64, the upper half of ${count(zero)} of ${count(values)} values is 0${but}`;
}

function halvesOf(words) {
  const seen = {small: 0, zero: 0, negative: 0, largeLow: 0};
  for (const word of words) {
    const upper = word >>> 16;
    seen.small += upper < SMALL;
    seen.zero += upper === 0;
    seen.negative += upper === 0xffff;
    seen.largeLow += (word & 0xffff) >= SMALL;
  }
  return seen;
}

function guess32(words, size) {
  const {small, zero, negative, largeLow} = halvesOf(words), n = words.length;
  const fits = (small + negative) * 1000 >= n * 999 && negative * 2 <= n;
  if (size % 4 || !n || !fits || (zero < n && largeLow * 10 < n)) return null;
  if (negative)
    return {
      dtype: "i32",
      reason: `as i32, ${count(negative)} of ${count(n)} values are negative and would be refused`
    };
  return {dtype: "u32", reason: `as u32, ${count(small)} of ${count(n)} values are below 2^20`};
}

function guess16(bytes) {
  let largest = 0;
  for (let k = 0; k + 1 < bytes.length; k += 2)
    largest = Math.max(largest, bytes[k] | bytes[k + 1] << 8);
  return {
    dtype: "u16",
    reason: `the values are too large for ids of 32 bits; as u16, the largest is ${count(largest)}`
  };
}

// {dtype, reason} for a file of `size` bytes; `bytes` is a sample of it (pieces whose lengths are
// multiples of 8). dtype is null if nothing indicates the type.
export function guessDtype(name, size, bytes) {
  const named = dtypeOfName(name);
  if (named && size % WIDTHS[named] === 0)
    return {dtype: named, reason: `its name contains ${named}`};
  if (bytes.every(b => b === 0))
    return {dtype: null, reason: "all sampled bytes are 0, which fits every type"};
  if (isText(bytes))
    return {
      dtype: "u8",
      reason: "it looks like text, which is not tokenized; as u8, each byte is a token"
    };
  if (size % 2)
    return {
      dtype: "u8",
      reason: `its size, ${count(size)} bytes, is odd, which fits no other type`
    };
  const words = wordsOf(bytes), why = looksLikeI64(words, size);
  if (why) return {dtype: "i64", reason: why};
  return guess32(words, size) || guess16(bytes);
}
