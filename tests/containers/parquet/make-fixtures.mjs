// SPDX-License-Identifier: MIT
// Writes the Parquet files of this folder with writers that share no code with the reader:
// hyparquet-writer (JavaScript) and parquet-wasm (the Rust implementation).
//
//   npm install hyparquet-writer@0.17.0 parquet-wasm@0.8.0 apache-arrow@21.2.0
//   node make-fixtures.mjs [FOLDER]
//
// All files hold the same tokens: token i is (i * 2654435761 mod 2^32) mod 50257 (mod 200 in files
// with a dictionary), and row r of a list column has (r * 7919) mod 61 tokens, or none if r is
// divisible by 10.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { parquetWriteBuffer } from 'hyparquet-writer'
import * as arrow from 'apache-arrow'
import * as wasm from 'parquet-wasm/node'

const folder = process.argv[2] ?? '.'
const ROWS = 40
const token = (i, limit) => Number((BigInt(i) * 2654435761n) % 4294967296n) % limit
const length = r => (r % 10 === 0 ? 0 : (r * 7919) % 61)

function rows(limit, make) {
  const all = []
  let done = 0
  for (let r = 0; r < ROWS; r++) {
    all.push(Array.from({ length: length(r) }, (_, k) => make(token(done + k, limit))))
    done += length(r)
  }
  return all
}

const flat = (limit, make) => rows(limit, make).flat()
const save = (name, data) => writeFileSync(join(folder, `${name}.parquet`), new Uint8Array(data))

// hyparquet-writer

const listSchema = type => [
  { name: 'root', num_children: 1 },
  { name: 'input_ids', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', type, repetition_type: 'OPTIONAL' },
]

function hyparquet(name, data, options = {}) {
  const { type = 'INT32', schema, encoding, nullable = true, ...rest } = options
  save(`hyparquet-${name}`, parquetWriteBuffer({
    columnData: [{ name: 'input_ids', data, encoding, nullable, ...(schema ? {} : { type }) }],
    schema,
    codec: 'UNCOMPRESSED',
    compressors: { GZIP: d => gzipSync(d) },
    rowGroupSize: 400,
    pageSize: 500,
    ...rest,
  }))
}

const big = BigInt
hyparquet('flat-int32', flat(50257, Number), { nullable: false, encoding: 'PLAIN' })
hyparquet('flat-int64-optional', flat(50257, big), { type: 'INT64' })
hyparquet('flat-dictionary', flat(200, Number), {})
hyparquet('flat-delta', flat(50257, Number), { encoding: 'DELTA_BINARY_PACKED' })
hyparquet('flat-delta-int64', flat(50257, big), { type: 'INT64', encoding: 'DELTA_BINARY_PACKED' })
hyparquet('flat-split', flat(50257, Number), { encoding: 'BYTE_STREAM_SPLIT' })
hyparquet('flat-split-int64', flat(50257, big), { type: 'INT64', encoding: 'BYTE_STREAM_SPLIT' })
hyparquet('list-snappy', rows(50257, Number), { schema: listSchema('INT32'), codec: 'SNAPPY', rowGroupSize: 12 })
hyparquet('list-gzip', rows(50257, big), { schema: listSchema('INT64'), codec: 'GZIP' })

// parquet-wasm

function rust(name, type, limit, make, options) {
  const list = new arrow.List(new arrow.Field('item', type, true))
  const data = options.isFlat ? flat(limit, make) : rows(limit, make)
  const vector = arrow.vectorFromArray(data, options.isFlat ? type : list)
  const table = new arrow.Table({ input_ids: vector })
  let builder = new wasm.WriterPropertiesBuilder()
    .setCompression(options.codec ?? wasm.Compression.UNCOMPRESSED)
    .setWriterVersion(options.version ?? wasm.WriterVersion.V1)
    .setDataPageSizeLimit(500)
    .setWriteBatchSize(64)
    .setDictionaryEnabled(options.dictionary ?? false)
    .setDictionaryPageSizeLimit(options.dictionaryBytes ?? 1 << 20)
    .setMaxRowGroupSize(options.isFlat ? 400 : 15)
  if (options.encoding !== undefined)
    builder = builder.setEncoding(options.encoding)
  save(`rust-${name}`, wasm.writeParquet(wasm.Table.fromIPCStream(arrow.tableToIPC(table, 'stream')), builder.build()))
}

const { Compression: C, WriterVersion: V, Encoding: E } = wasm
rust('list-plain', new arrow.Int32(), 50257, Number, {})
rust('list-v2', new arrow.Int32(), 50257, Number, { version: V.V2 })
rust('list-v2-zstd', new arrow.Uint32(), 50257, Number, { version: V.V2, codec: C.ZSTD, encoding: E.PLAIN })
rust('list-dictionary-snappy', new arrow.Int64(), 200, big, { codec: C.SNAPPY, dictionary: true })
rust('list-lz4', new arrow.Uint16(), 50257, Number, { codec: C.LZ4_RAW })
rust('list-gzip', new arrow.Int64(), 50257, big, { codec: C.GZIP })
rust('list-fallback', new arrow.Int32(), 50257, Number, { dictionary: true, dictionaryBytes: 300 })
rust('flat-v2-dictionary', new arrow.Uint8(), 200, Number, { isFlat: true, version: V.V2, dictionary: true, codec: C.SNAPPY })
rust('flat-delta', new arrow.Int64(), 50257, big, { isFlat: true, encoding: E.DELTA_BINARY_PACKED })
