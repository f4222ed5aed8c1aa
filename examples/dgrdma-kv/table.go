package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
)

// The table has slots of 512 bytes, in each one entry or none:
//
//	0   4  CRC32C of all that follows, up to the end of the value
//	4   1  length of the key; 0: the slot is empty
//	5   1  0
//	6   2  length of the value
//	8   8  version: how many changes the table had seen
//	16     key, value
//
// in big-endian order. An entry is in one of reach slots, from that on which its key's hash names. Behind the last slot
// that a hash can name there are some more, so that those of every key are side by side.
const (
	slotSize   = 512
	headerSize = 16
	reach      = 8

	maxKey  = 255
	maxBoth = slotSize - headerSize // of a key and its value together
)

var (
	errFull     = errors.New("no slot is free that may have this key: delete others, or serve a larger table")
	errNotThere = errors.New("there is no such key")
)

// checkSizes says what is wrong with an entry's lengths.
func checkSizes(key string, value []byte) error {
	switch {
	case len(key) == 0 || len(key) > maxKey:
		return fmt.Errorf("a key of %d bytes: it has 1 to %d", len(key), maxKey)
	case len(key)+len(value) > maxBoth:
		return fmt.Errorf("a key and value of %d bytes: they have %d at most", len(key)+len(value), maxBoth)
	}
	return nil
}

// home is the first slot that may have a key, in a table where hashes name so many.
func home(key string, slots int) int {
	h := fnv.New64a()
	h.Write([]byte(key))
	return int(h.Sum64() % uint64(slots))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// slot is the bytes of one, of the table or of a copy.
type slot []byte

// state of a slot, as somebody sees it who did not see it change.
type state int

const (
	empty state = iota
	whole
	torn // something is being written
)

func (s slot) state() state {
	key, value := int(s[4]), int(binary.BigEndian.Uint16(s[6:]))
	sum := binary.BigEndian.Uint32(s)
	switch {
	case key == 0 && sum == 0:
		return empty
	case key == 0 || key+value > maxBoth || sum != s.sum(key+value):
		return torn
	}
	return whole
}

// sum is the checksum of an entry with so many bytes of key and value.
func (s slot) sum(n int) uint32 { return crc32.Checksum(s[4:headerSize+n], castagnoli) }

func (s slot) key() []byte     { return s[headerSize:][:s[4]] }
func (s slot) value() []byte   { return s[headerSize+int(s[4]):][:binary.BigEndian.Uint16(s[6:])] }
func (s slot) version() uint64 { return binary.BigEndian.Uint64(s[8:]) }

// find looks for a key in the slots that may have it. Where something is being written nobody can say: not ok. Slots are not
// copied at the same moment, so that an entry which was deleted and put again may be there twice: the later one counts.
func find(near []byte, key string) (value []byte, there, ok bool) {
	latest := uint64(0)
	for ; len(near) >= slotSize; near = near[slotSize:] {
		s := slot(near[:slotSize])
		switch s.state() {
		case torn:
			return nil, false, false
		case whole:
			if string(s.key()) == key && s.version() > latest {
				value, there, latest = s.value(), true, s.version()
			}
		}
	}
	return value, there, true
}

// table is the server's. One goroutine at a time changes it.
type table struct {
	bytes   []byte
	slots   int // that hashes name
	version uint64
	scratch [slotSize]byte
}

func newTable(slots int) *table {
	return &table{bytes: make([]byte, (slots+reach-1)*slotSize), slots: slots}
}

// put sets the value of a key.
func (t *table) put(key string, value []byte) error {
	if err := checkSizes(key, value); err != nil {
		return err
	}
	at, _ := t.slot(key)
	if at == nil {
		return errFull
	}
	t.version++
	s := slot(t.scratch[:])
	s[4], s[5] = byte(len(key)), 0
	binary.BigEndian.PutUint16(s[6:], uint16(len(value)))
	binary.BigEndian.PutUint64(s[8:], t.version)
	n := headerSize + copy(s[headerSize:], key)
	n += copy(s[n:], value)
	binary.BigEndian.PutUint32(s, s.sum(n-headerSize))
	set(at, s[:n])
	return nil
}

// remove empties the slot of a key.
func (t *table) remove(key string) error {
	at, there := t.slot(key)
	if !there {
		return errNotThere
	}
	t.version++
	var nothing [headerSize]byte
	set(at, nothing[:])
	return nil
}

// slot is that of a key; without one, the first that is free; nil: none is.
func (t *table) slot(key string) (at slot, there bool) {
	first := home(key, t.slots)
	for i := range reach {
		s := slot(t.bytes[(first+i)*slotSize:][:slotSize])
		switch {
		case s.state() == empty && at == nil:
			at = s
		case s.state() == whole && string(s.key()) == key:
			return s, true
		}
	}
	return at, false
}

// set writes to the table while peers read it: that is how it is meant, and they have the checksum. So the race detector
// is not to tell of it, as it would of copy even here.
//
//go:norace
func set(at slot, b []byte) {
	for ; len(b) > 0; at, b = at[1:], b[1:] {
		at[0] = b[0]
	}
}
