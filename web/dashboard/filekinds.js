// SPDX-License-Identifier: MIT
//
// filekinds.js: recognises a file's format from its name, its size and its first bytes: offset,
// type and number of the tokens. Everything is checked before anything is sent; formats with
// companion files, which the page cannot read, are refused with the command that can.
//
// A kind is one of
//   {kind: "npy" | "llmc", dtype, width, offset, tokens, reason}     certain
//   {kind: "raw", guess, reason, size}                               the user chooses the type
//   {kind: "refused", sentence, wantsPush}                           wantsPush: `iron push` can

import {guessDtype, WIDTHS} from "./guess.js";
import {isNpy, NPY_PREFIX_BYTES, npyHeadBytes, readNpyHeader} from "./npy.js";
import {count, counted} from "./text.js";

const NPY_TYPES = {
  "|u1": "u8",
  "<u1": "u8",
  "<u2": "u16",
  "<u4": "u32",
  "<i4": "i32",
  "<i8": "i64"
};
const LLMC =
  [{magic: 20240520, version: 1, dtype: "u16"}, {magic: 20240801, version: 7, dtype: "u32"}];
const LLMC_HEAD_BYTES = 1024;
const SAMPLE_BYTES = 65536;  // at the beginning, in the middle and at the end

const FOREIGN = [
  {bytes: "LITPKDS", what: "a packed dataset of lit-gpt", wantsPush: true}, {
    bytes: "MMIDIDX\0\0",
    what: "the index of a Megatron dataset; the tokens are in the .bin file next to it",
    wantsPush: true
  },
  {bytes: "PK\x03\x04", what: "a zip archive (possibly .npz); unpack it first"},
  {bytes: "\x1f\x8b\x08", what: "compressed with gzip; unpack it first"},
  {bytes: "\x28\xb5\x2f\xfd", what: "compressed with zstd; unpack it first"},
  {bytes: "PAR1", what: "a Parquet table; write its tokens to a NumPy file first"}
];

function refused(sentence, wantsPush = false) {
  return {kind: "refused", sentence, wantsPush};
}

function startsWith(head, text) {
  return head.length >= text.length && [...text].every((c, k) => head[k] === c.charCodeAt(0));
}

function certain(kind, name, size, {dtype, offset, tokens, reason}) {
  const width = WIDTHS[dtype], have = size - offset;
  if (tokens === 0) return refused(`${name} contains no tokens.`);
  if (have !== tokens * width)
    return refused(
      `${name}: its header says ${counted(tokens, "token")} of ${counted(width, "byte")}, ` +
      `but there are ${counted(have, "byte")} from byte ${count(offset)} on. Is it truncated?`);
  return {kind, dtype, width, offset, tokens, reason};
}

function npyKind(name, size, head) {
  let header;
  try {
    header = readNpyHeader(head);
  } catch (error) {
    return refused(`${name}: ${error.message}.`);
  }
  const {descr, isFortran, shape, offset} = header, dtype = NPY_TYPES[descr];
  if (!dtype) {
    const type = Array.isArray(descr) ? "a record" : `'${descr}'`;
    return refused(
      `${name}: its NumPy type is ${type}, expected ` +
      `|u1, <u2, <u4, <i4 or <i8. Convert it with astype.`);
  }
  if (isFortran && shape.length > 1)
    return refused(
      `${name} is in Fortran order; save it in C order with ` +
      `numpy.ascontiguousarray.`);
  if (shape.length < 1 || shape.length > 2)
    return refused(
      `${name}: its shape has ${counted(shape.length, "dimension")}; ` +
      `expected 1 or 2. Save it with reshape(-1).`);
  const tokens = shape.reduce((a, b) => a * b, 1);
  if (!Number.isSafeInteger(tokens * 8)) return refused(`${name}: its shape is implausibly large.`);
  return certain("npy", name, size, {dtype, offset, tokens, reason: `NumPy, ${dtype}`});
}

function llmcKind(name, size, head, known) {
  if (head.length < LLMC_HEAD_BYTES) return refused(`${name}: its llm.c header is truncated.`);
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const version = view.getInt32(4, true), tokens = view.getInt32(8, true);
  if (version !== known.version)
    return refused(
      `${name}: llm.c version ${version}, expected ${known.version} with magic ` +
      `${known.magic}.`);
  if (tokens < 0)
    return refused(`${name}: its llm.c header says ${tokens} tokens. Is it truncated?`);
  return certain(
    "llmc", name, size,
    {dtype: known.dtype, offset: LLMC_HEAD_BYTES, tokens, reason: `llm.c, ${known.dtype}`});
}

function llmcOf(head) {
  if (head.length < 4) return undefined;
  const magic = new DataView(head.buffer, head.byteOffset, 4).getUint32(0, true);
  return LLMC.find(row => row.magic === magic);
}

// Refuses files that need companion files; `names` are the files that were added together.
function neighbourKind(name, names) {
  if (/\.ds(\.(index|metadata|loss|datalist))?$/.test(name))
    return refused(`${name} is part of a datatrove dataset, which has companion files.`, true);
  if (/\.bin$/.test(name) && names.includes(name.replace(/\.bin$/, ".idx")))
    return refused(`${name} was added with its index; together they are a Megatron dataset.`, true);
  return null;
}

// The kind, from the first bytes (a NumPy header must be whole in them) and a sample for guesses.
export function kindOf({name, size, head, sample = head, names = []}) {
  if (size === 0) return refused(`${name} is empty.`);
  if (isNpy(head)) return npyKind(name, size, head);
  const foreign = FOREIGN.find(row => startsWith(head, row.bytes));
  if (foreign) return refused(`${name} is ${foreign.what}.`, foreign.wantsPush);
  const llmc = llmcOf(head);
  if (llmc) return llmcKind(name, size, head, llmc);
  const neighbour = neighbourKind(name, names);
  if (neighbour) return neighbour;
  const {dtype, reason} = guessDtype(name, size, sample);
  return {kind: "raw", guess: dtype, reason, size};
}

// A raw file after the user has chosen the type: a certain kind, or refused.
export function asRaw(name, size, dtype) {
  const width = WIDTHS[dtype];
  if (size % width)
    return refused(
      `${name}: its ${counted(size, "byte")} are not a whole number of ${dtype} tokens ` +
      `of ${counted(width, "byte")}. Is it truncated, or is the type different?`);
  return {kind: "raw", dtype, width, offset: 0, tokens: size / width, reason: `raw, ${dtype}`};
}

async function bytesOf(blob, from, to) {
  return new Uint8Array(await blob.slice(from, to).arrayBuffer());
}

// Up to three stretches of the file, each beginning at a multiple of 8.
async function sampleOf(file) {
  if (file.size <= 3 * SAMPLE_BYTES) return bytesOf(file, 0, file.size);
  const middle = Math.floor(file.size / 16) * 8;
  const end = Math.floor((file.size - SAMPLE_BYTES) / 8) * 8;
  const parts = [];
  for (const from of [0, middle, end]) parts.push(await bytesOf(file, from, from + SAMPLE_BYTES));
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// Examines a File (or a Blob with a name); `names` are the files that were added together.
export async function examineFile(file, names = []) {
  const {name, size} = file;
  try {
    let head = await bytesOf(file, 0, LLMC_HEAD_BYTES);
    if (isNpy(head) && head.length >= NPY_PREFIX_BYTES)
      head = await bytesOf(file, 0, npyHeadBytes(head));
    const kind = kindOf({name, size, head, names});
    return kind.kind === "raw" ? kindOf({name, size, head, sample: await sampleOf(file), names}) :
                                 kind;
  } catch (error) {
    if (error.message.startsWith("its ")) return refused(`${name}: ${error.message}.`);
    return refused(`${name} cannot be read. If it is a folder, add its files instead.`, true);
  }
}
