// SPDX-License-Identifier: MIT
// Real token ids of real text: gpt-tokenizer's cl100k_base over the text files of a tree.
//
//   node tokenize.mjs COUNT OUT.u32 LENGTHS.u32 ROOT...
//
// Writes the first COUNT tokens of the files below the roots, in the order of their paths, as raw u32, and
// the number of tokens of each document: a file, or a piece of a long one. If the text does not suffice,
// it is taken again. A file is text if it is UTF-8 without control characters.
import { closeSync, openSync, readFileSync, readdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { encode } from 'gpt-tokenizer/encoding/cl100k_base'

const PIECE = 16384 // characters: the tokenizer's time grows faster than its input

function* textFiles(folder) {
  let entries = []
  try {
    entries = readdirSync(folder, { withFileTypes: true })
  } catch {
    return // gone, or not ours to read
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* textFiles(path)
    else if (entry.isFile() && !/\.(gz|xz|zst|png|so|a|o|pyc)$/.test(entry.name)) yield path
  }
}

function textOf(path) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
    return /[\0-\x08\x0e-\x1f]/.test(text) ? '' : text
  } catch {
    return ''
  }
}

function* documents(roots) {
  for (const root of roots) {
    for (const path of textFiles(root)) {
      const text = textOf(path)
      for (let at = 0; at < text.length; at += PIECE) yield encode(text.slice(at, at + PIECE))
    }
  }
}

const [count, out, lengthsOut, ...roots] = process.argv.slice(2)
const files = [openSync(out, 'w'), openSync(lengthsOut, 'w')]
let left = Number(count)
while (left > 0) {
  const before = left
  for (const tokens of documents(roots)) {
    const part = Uint32Array.from(tokens.slice(0, left))
    writeSync(files[0], part)
    writeSync(files[1], Uint32Array.of(part.length))
    left -= part.length
    if (left === 0) break
  }
  if (left === before) throw new Error(`no text below ${roots.join(' ')}`)
}
files.forEach((file) => closeSync(file))
