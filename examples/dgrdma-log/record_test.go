package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// logOf is a file with these records.
func logOf(records ...string) []byte {
	file := make([]byte, first+1<<16)
	copy(file, mark)
	at := first
	for i, r := range records {
		at += putRecord(file[at:], uint64(i+1), []byte(r))
	}
	binary.BigEndian.PutUint64(file[tailAt:], uint64(at))
	return file
}

func records(file []byte) (got []string, e end, err error) {
	e, err = scan(file, func(number uint64, data []byte) {
		if number != uint64(len(got)+1) {
			panic(fmt.Sprintf("record %d comes behind %d", number, len(got)))
		}
		got = append(got, string(data))
	})
	return got, e, err
}

func TestScan(t *testing.T) {
	want := []string{"one", "", "a longer one of 24 bytes", string(bytes.Repeat([]byte("x"), 5000))}
	file := logOf(want...)
	got, e, err := records(file)
	if err != nil || !slices.Equal(got, want) || e.records != 4 || e.tail != int(binary.BigEndian.Uint64(file[tailAt:])) {
		t.Fatalf("%q, %+v, %v", got, e, err)
	}
	// Nothing behind the tail counts, whatever it is: least of all a record that is whole.
	putRecord(file[e.tail:], 5, []byte("never flushed"))
	if got, _, err = records(file); err != nil || !slices.Equal(got, want) {
		t.Errorf("with more behind the tail: %q, %v", got, err)
	}
	// Every byte of a record before the tail counts, but those which only fill it up.
	data := 0
	for i := first; i < e.tail; i++ {
		damaged := bytes.Clone(file)
		damaged[i] ^= 1
		got, _, err := records(damaged)
		if errors.Is(err, errDamaged) {
			data++
		} else if err != nil || !slices.Equal(got, want) {
			t.Fatalf("the byte at %d is another one, and that gives %.20q, %v", i, got, err)
		}
	}
	if want := 4*headerSize + 3 + 0 + 24 + 5000; data != want {
		t.Errorf("damage of %d bytes was found, not of %d", data, want)
	}
	// A tail that was never at the end of a record is not believed.
	for tail := range e.tail + 8 {
		binary.BigEndian.PutUint64(file[tailAt:], uint64(tail))
		got, _, err := records(file)
		if err == nil && !slices.Contains([]int{0, first, first + room(3), first + room(3) + room(0), e.tail - room(5000), e.tail}, tail) {
			t.Errorf("a tail at %d is taken: %.20q", tail, got)
		}
	}
	for _, c := range []struct {
		file []byte
		want error
	}{{nil, errNoLog}, {make([]byte, 2*first), errNoLog}, {[]byte(mark), nil}, {logOf(), nil}} {
		if got, _, err := records(c.file); !errors.Is(err, c.want) || len(got) != 0 {
			t.Errorf("%.8q: %q, %v", c.file, got, err)
		}
	}
}

// FuzzScan: whatever a file holds, its records are there or it is said to be damaged.
func FuzzScan(f *testing.F) {
	f.Add(logOf("one", "two")[:first+200])
	random := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		file := logOf("one", "two", "three")[:first+200]
		file[first+random.IntN(200)] ^= byte(1 + random.IntN(255))
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, e, err := records(file)
		if uint64(len(got)) != e.records || err == nil && e.tail > max(len(file), first) {
			t.Errorf("%d records, %+v, %v", len(got), e, err)
		}
	})
}
