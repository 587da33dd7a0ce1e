// SPDX-License-Identifier: MIT
// Writes Arrow and Parquet files with libraries that know nothing of iron: apache-arrow, parquet-wasm
// (the Rust implementation) and hyparquet-writer. `iron` must find in them the tokens that went in.
//
//   node write.mjs [--try] [JOBS.json]        (default: standard input; --try only loads the libraries)
//
// JOBS.json is an array of jobs:
//   out       the file to write
//   writer    "arrow", "parquet-wasm" or "hyparquet"
//   tokens    a raw file of u32, the values of every column that has none of its own
//   rows      the lengths of the rows, an array or a raw file of u32; without it each token is a row
//   columns   [{name, type, nullable = true, item_nullable = true, item = "item", nulls: [row],
//             item_nulls: [value], values: [number or decimal string]}]
//   batch     rows in a record batch (default: all)
// Arrow:         kind "file" or "stream", compression "lz4" or "zstd", dictionary "shared", "delta" or
//                "replaced", legacy true for the format without continuation markers
// parquet-wasm:  compression, version 1 or 2 (of the pages), dictionary true or false, encoding,
//                row_group (rows), page (bytes), write_batch (values)
// hyparquet:     compression, encoding, row_group (rows), page (bytes), column_index true
//
// A type is int8 ... uint64, float64, bool, string, or one of list<T>, large_list<T>,
// fixed_size_list<T>[N], dictionary<T> (of T integers), struct<T>.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import zlib from 'node:zlib'
import * as arrow from 'apache-arrow'
import * as parquet from 'parquet-wasm'
import { ByteWriter, parquetWrite } from 'hyparquet-writer'

const INTEGERS = {
  int8: [arrow.Int8, Int8Array], int16: [arrow.Int16, Int16Array], int32: [arrow.Int32, Int32Array],
  int64: [arrow.Int64, BigInt64Array], uint8: [arrow.Uint8, Uint8Array],
  uint16: [arrow.Uint16, Uint16Array], uint32: [arrow.Uint32, Uint32Array],
  uint64: [arrow.Uint64, BigUint64Array],
}

// Types.

function parseType(text) {
  const nested = /^(list|large_list|fixed_size_list|dictionary|struct)<(.*)>(?:\[(\d+)\])?$/.exec(text)
  if (nested) return { kind: nested[1], of: parseType(nested[2]), size: Number(nested[3] ?? 0) }
  if (INTEGERS[text]) return { kind: 'integer', name: text }
  if (['float64', 'bool', 'string'].includes(text)) return { kind: text }
  throw new Error(`unknown type ${text}`)
}

let dictionaryIds = 0
function arrowType(type, column) {
  const item = () => new arrow.Field(column.item ?? 'item', arrowType(type.of, column), column.item_nullable ?? true)
  switch (type.kind) {
    case 'integer': return new INTEGERS[type.name][0]()
    case 'float64': return new arrow.Float64()
    case 'bool': return new arrow.Bool()
    case 'string': return new arrow.Utf8()
    case 'list': return new arrow.List(item())
    case 'large_list': return new arrow.LargeList(item())
    case 'fixed_size_list': return new arrow.FixedSizeList(type.size, item())
    case 'struct': return new arrow.Struct([item()])
    case 'dictionary': return new arrow.Dictionary(arrowType(type.of, column), new arrow.Int32(), dictionaryIds++)
  }
}

const isList = (type) => ['list', 'large_list', 'fixed_size_list'].includes(type.kind)

// Values.

function rawU32(path) {
  const bytes = readFileSync(path)
  return new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
}

// The integers of a type: a typed array, of the values as they are modulo its width.
function integers(name, values) {
  const Values = INTEGERS[name][1]
  const isBig = Values === BigInt64Array || Values === BigUint64Array
  const out = new Values(values.length)
  if (!isBig && values instanceof Uint32Array) out.set(values)
  else for (let k = 0; k < values.length; k++) out[k] = isBig ? BigInt(values[k]) : Number(values[k])
  return out
}

// The bits of a validity bitmap for items first ... first+count-1, of which `nulls` are none.
function validity(nulls, first, count) {
  const within = (nulls ?? []).filter((k) => k >= first && k < first + count)
  if (within.length === 0) return { nullCount: 0 }
  const nullBitmap = new Uint8Array(Math.ceil(count / 64) * 8).fill(255)
  for (const k of within) nullBitmap[(k - first) >> 3] &= ~(1 << ((k - first) & 7))
  return { nullCount: within.length, nullBitmap }
}

// Arrow's data of values first ... first+count-1 of a column, without its lists.
function plainData(type, fieldType, column, values, first, count, nulls, state) {
  const valid = validity(nulls, first, count)
  const part = values.slice(first, first + count)
  if (type.kind === 'integer') {
    return arrow.makeData({ type: fieldType, length: count, ...valid, data: integers(type.name, part) })
  }
  if (type.kind === 'dictionary') {
    const { indices, dictionary } = dictionaryOf(type, fieldType, part, state)
    return arrow.makeData({ type: fieldType, length: count, ...valid, data: indices, dictionary })
  }
  if (type.kind === 'struct') {
    const child = plainData(type.of, fieldType.children[0].type, column, values, first, count, [], state)
    return arrow.makeData({ type: fieldType, length: count, ...valid, children: [child] })
  }
  if (isList(type)) { // lists of lists: each value a list of its own
    const child = plainData(type.of, fieldType.children[0].type, column, values, first, count, [], state)
    const valueOffsets = Int32Array.from({ length: count + 1 }, (_, k) => k)
    return arrow.makeData({ type: fieldType, length: count, ...valid, valueOffsets, child })
  }
  const shown = Array.from(part, (v, k) => valid.nullBitmap && !(valid.nullBitmap[k >> 3] >> (k & 7) & 1) ? null
    : type.kind === 'string' ? `row ${v}` : type.kind === 'bool' ? v % 2 === 1 : Number(v) + 0.5)
  return arrow.vectorFromArray(shown, fieldType).data[0]
}

// Indices into a dictionary: the same for all batches, one that grows, or another one each time.
function dictionaryOf(type, fieldType, part, state) {
  if (state.mode === 'replaced' || !state.index) {
    state.index = new Map()
    state.chunks = []
  }
  const fresh = []
  const known = state.mode === 'shared' && state.chunks.length === 0 ? state.all : part
  for (const value of known) {
    const key = String(value)
    if (!state.index.has(key)) {
      state.index.set(key, state.index.size)
      fresh.push(value)
    }
  }
  if (fresh.length > 0 || state.chunks.length === 0) {
    state.chunks.push(arrow.makeData({
      type: fieldType.dictionary, length: fresh.length, data: integers(type.of.name, fresh),
    }))
    state.vector = new arrow.Vector([...state.chunks])
  }
  return { indices: Int32Array.from(part, (value) => state.index.get(String(value))), dictionary: state.vector }
}

// One column of a batch: rows row0 ... row1-1, whose values begin at starts[row].
function columnData(column, fieldType, values, starts, row0, row1, state) {
  const type = column.parsed
  if (!isList(type)) return plainData(type, fieldType, column, values, row0, row1 - row0, column.nulls, state)
  const [first, end] = [starts[row0], starts[row1]]
  const child = plainData(type.of, fieldType.children[0].type, column, values, first, end - first,
    column.item_nulls, state)
  const valid = validity(column.nulls, row0, row1 - row0)
  const parts = { type: fieldType, length: row1 - row0, ...valid, child }
  if (type.kind === 'list') parts.valueOffsets = Int32Array.from(starts.subarray(row0, row1 + 1), (s) => s - first)
  if (type.kind === 'large_list') {
    parts.valueOffsets = BigInt64Array.from(starts.subarray(row0, row1 + 1), (s) => BigInt(s - first))
  }
  return arrow.makeData(parts)
}

function startsOf(job, count) {
  if (!job.rows) return Float64Array.from({ length: count + 1 }, (_, k) => k)
  const lengths = typeof job.rows === 'string' ? rawU32(job.rows) : job.rows
  const starts = new Float64Array(lengths.length + 1)
  for (let k = 0; k < lengths.length; k++) starts[k + 1] = starts[k] + lengths[k]
  return starts
}

function recordBatches(job) {
  const tokens = job.tokens ? rawU32(job.tokens) : new Uint32Array(0)
  for (const column of job.columns) column.parsed = parseType(column.type)
  const first = job.columns.find((c) => !c.values) ?? job.columns[0]
  const starts = startsOf(job, (first.values ?? tokens).length)
  const rows = starts.length - 1
  const fields = job.columns.map((c) => new arrow.Field(c.name, arrowType(c.parsed, c), c.nullable ?? true))
  const schema = new arrow.Schema(fields)
  // A column beside the tokens has a value a row.
  const values = job.columns.map((c) => c.values ?? (isList(c.parsed) || !job.rows ? tokens
    : Uint32Array.from({ length: rows }, (_, k) => k)))
  const states = job.columns.map((_, k) => ({ mode: job.dictionary ?? 'shared', all: values[k] }))
  const batches = []
  const step = job.batch ?? Math.max(rows, 1)
  for (let row = 0; row < rows; row += step) {
    const end = Math.min(rows, row + step)
    const children = job.columns.map((c, k) =>
      columnData(c, fields[k].type, values[k], starts, row, end, states[k]))
    batches.push(new arrow.RecordBatch(schema,
      arrow.makeData({ type: new arrow.Struct(fields), length: end - row, nullCount: 0, children })))
  }
  return { schema, batches }
}

// Arrow. Buffers are compressed by the commands of zstd and lz4, since node has neither.

function compressed(name, bytes) {
  if (bytes.length === 0) return new Uint8Array(0)
  const options = { input: bytes, maxBuffer: 2 ** 31 - 1, stdio: ['pipe', 'pipe', 'ignore'] }
  return name === 'zstd' ? execFileSync('zstd', ['-q', '-c', '-1'], options)
    : execFileSync('lz4', ['-q', '-c', '-1'], options)
}

// apache-arrow 21.2 puts the compressed length where the format has the uncompressed one, so that other
// readers refuse its buffers; this method is right. `raw` leaves some buffers as they are (length -1).
function compressing(Writer, name) {
  return class extends Writer {
    _compressBodyBuffers(buffers) {
      const out = [], bufferRegions = []
      let at = 0
      for (const buffer of buffers) {
        const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
        if (bytes.length === 0) {
          out.push(new Uint8Array(0), new Uint8Array(0))
          bufferRegions.push({ offset: at, length: 0 })
          continue
        }
        const small = compressed(name, bytes)
        const isSmaller = small.length < bytes.length
        const body = isSmaller ? small : bytes
        const prefix = new DataView(new ArrayBuffer(8))
        prefix.setBigInt64(0, isSmaller ? BigInt(bytes.length) : -1n, true)
        out.push(new Uint8Array(prefix.buffer), new Uint8Array(body))
        bufferRegions.push({ offset: at, length: 8 + body.length })
        at = (at + 8 + body.length + 7) & ~7
      }
      return { byteLength: at, bufferRegions, buffers: out }
    }
  }
}

function writeArrow(job) {
  const { schema, batches } = recordBatches(job)
  let Writer = job.kind === 'file' ? arrow.RecordBatchFileWriter : arrow.RecordBatchStreamWriter
  const options = { autoDestroy: true, writeLegacyIpcFormat: job.legacy ?? false }
  if (job.compression) {
    options.compressionType = job.compression === 'zstd' ? arrow.CompressionType.ZSTD : arrow.CompressionType.LZ4_FRAME
    Writer = compressing(Writer, job.compression)
  }
  const writer = new Writer(options)
  writer.reset(undefined, schema)
  for (const batch of batches) writer.write(batch)
  writer.finish()
  return writer.toUint8Array(true)
}

// Parquet.

function writeParquetWasm(job) {
  const { schema, batches } = recordBatches(job)
  const table = new arrow.Table(schema, batches.length ? batches : undefined)
  const properties = new parquet.WriterPropertiesBuilder()
    .setCompression(parquet.Compression[job.compression ?? 'UNCOMPRESSED'])
    .setWriterVersion(job.version === 2 ? parquet.WriterVersion.V2 : parquet.WriterVersion.V1)
    .setDictionaryEnabled(job.dictionary ?? false)
  let set = properties
  if (job.encoding) set = set.setEncoding(parquet.Encoding[job.encoding])
  if (job.row_group) set = set.setMaxRowGroupSize(job.row_group)
  if (job.page) set = set.setDataPageSizeLimit(job.page)
  if (job.write_batch) set = set.setWriteBatchSize(job.write_batch)
  const ipc = arrow.tableToIPC(table, 'stream')
  return parquet.writeParquet(parquet.Table.fromIPCStream(ipc), set.build())
}

const CONVERTED = {
  int8: 'INT_8', int16: 'INT_16', int32: undefined, int64: undefined,
  uint8: 'UINT_8', uint16: 'UINT_16', uint32: 'UINT_32', uint64: 'UINT_64',
}

function parquetElement(name, type, repetition) {
  const element = { name, repetition_type: repetition }
  if (type.kind === 'string') return { ...element, type: 'BYTE_ARRAY', converted_type: 'UTF8' }
  if (type.kind === 'float64') return { ...element, type: 'DOUBLE' }
  if (type.kind === 'bool') return { ...element, type: 'BOOLEAN' }
  const converted = CONVERTED[type.name]
  return { ...element, type: type.name.endsWith('64') ? 'INT64' : 'INT32', ...(converted && { converted_type: converted }) }
}

function parquetValues(type, values, nulls) {
  const none = new Set(nulls ?? [])
  const big = type.name?.endsWith('64')
  const one = (v) => type.kind === 'string' ? `row ${v}` : type.kind === 'float64' ? Number(v) + 0.5
    : type.kind === 'bool' ? v % 2 === 1 : big ? BigInt(v) : Number(v) | 0
  if (!nulls && type.kind === 'integer') {
    return big ? BigInt64Array.from(values, BigInt) : Int32Array.from(values, (v) => Number(v) | 0)
  }
  return Array.from(values, (v, k) => none.has(k) ? null : one(v))
}

function writeHyparquet(job) {
  const tokens = job.tokens ? rawU32(job.tokens) : new Uint32Array(0)
  const schema = [{ name: 'root', num_children: job.columns.length }]
  const columnData = []
  for (const column of job.columns) {
    const type = parseType(column.type)
    const repetition = column.nullable === false ? 'REQUIRED' : 'OPTIONAL'
    const encoding = job.encoding && (type.kind === 'integer' || isList(type)) ? { encoding: job.encoding } : {}
    if (!isList(type)) {
      schema.push(parquetElement(column.name, type, repetition))
      const values = column.values ?? (job.rows ? Uint32Array.from(startsOf(job, 0).keys()).slice(0, -1) : tokens)
      columnData.push({ name: column.name, data: parquetValues(type, values, column.nulls), ...encoding,
        columnIndex: job.column_index ?? false })
      continue
    }
    schema.push({ name: column.name, repetition_type: repetition, num_children: 1, converted_type: 'LIST' },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      parquetElement('element', type.of, column.item_nullable === false ? 'REQUIRED' : 'OPTIONAL'))
    const values = parquetValues(type.of, column.values ?? tokens, column.item_nulls)
    const starts = startsOf(job, values.length)
    const none = new Set(column.nulls ?? [])
    const data = Array.from({ length: starts.length - 1 }, (_, k) =>
      none.has(k) ? null : Array.from(values.slice(starts[k], starts[k + 1])))
    columnData.push({ name: column.name, data, ...encoding })
  }
  const writer = new ByteWriter()
  const codec = job.compression ?? 'UNCOMPRESSED'
  const compressors = { GZIP: (bytes) => zlib.gzipSync(bytes), ZSTD: (bytes) => compressed('zstd', bytes) }
  parquetWrite({ writer, columnData, schema, codec, ...(codec !== 'SNAPPY' && { compressors }),
    ...(job.row_group && { rowGroupSize: job.row_group }), ...(job.page && { pageSize: job.page }) })
  return new Uint8Array(writer.getBuffer())
}

const WRITERS = { arrow: writeArrow, 'parquet-wasm': writeParquetWasm, hyparquet: writeHyparquet }

function main(args) {
  if (args[0] === '--try') return
  const jobs = JSON.parse(readFileSync(args[0] ?? 0, 'utf-8'))
  for (const job of jobs) {
    try {
      writeFileSync(job.out, WRITERS[job.writer](job))
    } catch (error) {
      throw new Error(`${job.out}: ${error.message ?? error}`, { cause: error })
    }
  }
}

main(process.argv.slice(2))
