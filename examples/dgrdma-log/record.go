package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// The file begins with a page of its own:
//
//	0   8  what it is: mark
//	64  8  tail: where the next record begins, counted from the beginning of the file; 0: there is none yet
//
// Records follow from the offset first on, each at a multiple of 8:
//
//	0   4  CRC32C of all that follows, up to the end of the data
//	4   4  length of the data
//	8   8  number of the record, from 1 on
//	16     data
//
// in big-endian order. What is behind the tail says nothing: it is what was being written when somebody died.
const (
	mark       = "RDMAlog1"
	tailAt     = 64
	first      = 4096
	headerSize = 16
	maxData    = 64 << 10
)

var (
	errNoLog   = errors.New("it is no log of this kind")
	errDamaged = errors.New("the log is damaged")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// room is how much of the file a record takes that has n bytes of data.
func room(n int) int { return (headerSize + n + 7) &^ 7 }

// putRecord writes a record to b, which has room for it and zeros behind, and returns its room.
func putRecord(b []byte, number uint64, data []byte) int {
	n := room(len(data))
	clear(b[headerSize+len(data) : n])
	binary.BigEndian.PutUint32(b[4:], uint32(len(data)))
	binary.BigEndian.PutUint64(b[8:], number)
	copy(b[headerSize:], data)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:headerSize+len(data)], castagnoli))
	return n
}

// end is where a log ends, and its next record goes.
type end struct {
	tail    int
	records uint64
}

// scan reads a log from its beginning to its tail, and calls each with the records. Every record must be whole and have its
// number, and the last one must end at the tail: errDamaged says that what was flushed is not there.
func scan(file []byte, each func(number uint64, data []byte)) (end, error) {
	e := end{tail: first}
	if len(file) < len(mark) || string(file[:len(mark)]) != mark {
		return e, errNoLog
	}
	if len(file) < first { // who made it did not live to make it longer
		return e, nil
	}
	tail := binary.BigEndian.Uint64(file[tailAt:])
	switch {
	case tail == 0:
		return e, nil
	case tail < first || tail > uint64(len(file)):
		return e, fmt.Errorf("%w: its tail is %d, and the file has %d bytes", errDamaged, tail, len(file))
	}
	for e.tail < int(tail) {
		b := file[e.tail:tail]
		if len(b) < headerSize {
			return e, fmt.Errorf("%w: a record at %d goes beyond the tail at %d", errDamaged, e.tail, tail)
		}
		n := binary.BigEndian.Uint32(b[4:])
		switch {
		case n > maxData || room(int(n)) > len(b):
			return e, fmt.Errorf("%w: a record at %d has %d bytes, and the tail is at %d", errDamaged, e.tail, n, tail)
		case binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:headerSize+n], castagnoli):
			return e, fmt.Errorf("%w: the record at %d has another checksum", errDamaged, e.tail)
		case binary.BigEndian.Uint64(b[8:]) != e.records+1:
			return e, fmt.Errorf("%w: the record at %d is number %d, not %d", errDamaged, e.tail, binary.BigEndian.Uint64(b[8:]), e.records+1)
		}
		e.records++
		if each != nil {
			each(e.records, b[headerSize:headerSize+n])
		}
		e.tail += room(int(n))
	}
	return e, nil
}
