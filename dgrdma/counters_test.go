package dgrdma

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// TestEveryCounterHasARow checks that each counter has a row. A counter without a name, or with
// that of another one, would never be seen, and one of another type neither added up nor shown.
func TestEveryCounterHasARow(t *testing.T) {
	var fields []reflect.StructField
	for _, of := range []reflect.Type{reflect.TypeFor[Counters](), reflect.TypeFor[transport.Stats]()} {
		for i := range of.NumField() {
			if f := of.Field(i); f.Name != "Refused" {
				fields = append(fields, f)
			}
		}
	}
	name, help := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`), regexp.MustCompile(`^[A-Z].*\.$`)
	seen := make(map[string]bool)
	for _, f := range fields {
		n := f.Tag.Get("count")
		if f.Type.Kind() != reflect.Uint64 || !name.MatchString(n) || !help.MatchString(f.Tag.Get("help")) {
			t.Errorf("%s is %v with the tag %s", f.Name, f.Type, f.Tag)
		}
		if seen[n] {
			t.Errorf("two counters are called %q", n)
		}
		seen[n] = true
	}
}

// TestAddIsComplete checks that a sum has all counters: one that is left out would never be missed.
func TestAddIsComplete(t *testing.T) {
	var a, b Counters
	n := uint64(0)
	for i := range reflect.TypeFor[Counters]().NumField() {
		f, g := reflect.ValueOf(&a).Elem().Field(i), reflect.ValueOf(&b).Elem().Field(i)
		if f.Kind() != reflect.Uint64 {
			continue
		}
		n++
		f.SetUint(n)
		g.SetUint(1000 * n)
	}
	for i := range a.Refused {
		a.Refused[i], b.Refused[i] = uint64(i), 1000*uint64(i)
	}
	a.Add(&b)
	for i := range n {
		if got := reflect.ValueOf(a).Field(int(i)).Uint(); got != 1001*(i+1) {
			t.Errorf("%s is %d, want %d", reflect.TypeFor[Counters]().Field(int(i)).Name, got, 1001*(i+1))
		}
	}
	for i, got := range a.Refused {
		if got != 1001*uint64(i) {
			t.Errorf("refused for %v: %d, want %d", Reason(i), got, 1001*i)
		}
	}
}
