package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// look finds a key in the table as a client does.
func (t *table) look(key string) (value []byte, there, ok bool) {
	return find(t.bytes[home(key, t.slots)*slotSize:][:reach*slotSize], key)
}

// TestTable: the table is a map, as far as there is room.
func TestTable(t *testing.T) {
	const slots = 32
	random := rand.New(rand.NewPCG(1, 2))
	table, model := newTable(slots), make(map[string]string)
	full := 0
	for range 3000 {
		key := fmt.Sprint("key ", random.IntN(60))
		value := strings.Repeat("v", random.IntN(maxBoth-len(key)+1))
		if random.IntN(3) == 0 {
			_, there := model[key]
			if err := table.remove(key); there != (err == nil) || err != nil && !errors.Is(err, errNotThere) {
				t.Fatalf("remove: %v, and it was there: %v", err, there)
			}
			delete(model, key)
		} else if err := table.put(key, []byte(value)); err == nil {
			model[key] = value
		} else if _, there := model[key]; there || !errors.Is(err, errFull) {
			t.Fatalf("put: %v, and it was there: %v", err, there)
		} else {
			full++
		}
		for i := range 60 {
			key := fmt.Sprint("key ", i)
			got, there, ok := table.look(key)
			if want, is := model[key]; !ok || there != is || string(got) != want {
				t.Fatalf("%s: %q, %v, %v; want %q, %v", key, got, there, ok, want, is)
			}
		}
	}
	if full == 0 {
		t.Error("the table was never full")
	}
}

func TestSizes(t *testing.T) {
	table := newTable(4)
	long := strings.Repeat("k", maxKey)
	for _, c := range []struct {
		key   string
		value int
		fits  bool
	}{{"", 1, false}, {"k", 0, true}, {"k", maxBoth - 1, true}, {"k", maxBoth, false}, {long, maxBoth - maxKey, true}, {long, maxBoth - maxKey + 1, false}, {long + "k", 0, false}} {
		value := bytes.Repeat([]byte("v"), c.value)
		if err := table.put(c.key, value); (err == nil) != c.fits {
			t.Errorf("a key of %d bytes, a value of %d: %v", len(c.key), c.value, err)
		}
		if got, there, _ := table.look(c.key); c.fits && (!there || !bytes.Equal(got, value)) {
			t.Errorf("a key of %d bytes, a value of %d: got %d, %v", len(c.key), c.value, len(got), there)
		}
	}
}

// TestTorn: wherever a copy is cut between the old entry and the new one, it is one of them, or known for neither.
func TestTorn(t *testing.T) {
	table := newTable(1)
	states := map[string][]byte{}
	note := func(name string) { states[name] = bytes.Clone(table.bytes[:slotSize]) }
	note("empty")
	table.put("key", bytes.Repeat([]byte("old"), 50))
	note("old")
	table.put("key", bytes.Repeat([]byte("new"), 100))
	note("new")
	table.remove("key")
	note("removed")
	known := 0
	for from, a := range states {
		for to, b := range states {
			for cut := range slotSize + 1 {
				mixed := slot(append(bytes.Clone(a[:cut]), b[cut:]...))
				if mixed.state() != whole {
					known++
					continue
				}
				if v := string(mixed.value()); v != strings.Repeat("old", 50) && v != strings.Repeat("new", 100) {
					t.Errorf("from %s to %s, cut at %d: %.20q is taken for good", from, to, cut, v)
				}
			}
		}
	}
	if known == 0 {
		t.Error("no copy was torn")
	}
	// One that is deleted and put elsewhere may be seen twice.
	near := make([]byte, 2*slotSize)
	copy(near, states["new"])
	copy(near[slotSize:], states["old"])
	if v, there, ok := find(near, "key"); !there || !ok || !bytes.HasPrefix(v, []byte("new")) {
		t.Errorf("the older one counts: %.20q", v)
	}
	near[100]++
	if _, _, ok := find(near, "key"); ok {
		t.Error("an entry that is being written was not noticed")
	}
}

// FuzzFind: whatever a server's memory holds, a client does not panic.
func FuzzFind(f *testing.F) {
	table := newTable(1)
	table.put("key", []byte("value"))
	f.Add(table.bytes[:2*slotSize], "key")
	f.Fuzz(func(t *testing.T, near []byte, key string) { find(near, key) })
}
