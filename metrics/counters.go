package metrics

import "reflect"

// Counter is one of an endpoint's, a connection's or a wire's counters: its name in both
// forms, and what it counts.
type Counter struct{ Name, Help string }

// Counted says what sources count.
type Counted struct {
	Endpoint  []Counter // endpoints, and each of their connections
	Transport []Counter // their wires
}

// CountersOf returns the counters that are fields of a struct: those of kind uint64, whose
// tags count and help say their names and what they count.
func CountersOf[T any]() (all []Counter) {
	for f := range reflect.TypeFor[T]().Fields() {
		if f.Type.Kind() == reflect.Uint64 {
			all = append(all, Counter{f.Tag.Get("count"), f.Tag.Get("help")})
		}
	}
	return all
}

// Counts returns the values of those counters by name.
func Counts[T any](s *T) map[string]uint64 {
	m := make(map[string]uint64)
	for f, v := range reflect.ValueOf(s).Elem().Fields() {
		if v.Kind() == reflect.Uint64 {
			m[f.Tag.Get("count")] = v.Uint()
		}
	}
	return m
}
