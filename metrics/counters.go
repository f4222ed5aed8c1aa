package metrics

import "reflect"

// Counter is a counter of endpoints, connections or wires: its name, in Prometheus metrics
// and in the View, and what it counts.
type Counter struct{ Name, Help string }

// Counted lists the counters that sources have.
type Counted struct {
	Endpoint  []Counter // of endpoints, and of each of their connections
	Transport []Counter // of their wires
	RDMA      []Counter // of hosts of RDMA over TCP
	RPC       []Counter // of servers of ONC RPC
}

// CountersOf returns the counters of a struct: its fields of kind uint64. Their tags
// "count" and "help" have the names and what they count.
func CountersOf[T any]() (all []Counter) {
	for f := range reflect.TypeFor[T]().Fields() {
		if f.Type.Kind() == reflect.Uint64 {
			all = append(all, Counter{f.Tag.Get("count"), f.Tag.Get("help")})
		}
	}
	return all
}

// Counts returns the values of those counters, by name.
func Counts[T any](s *T) map[string]uint64 {
	m := make(map[string]uint64)
	for f, v := range reflect.ValueOf(s).Elem().Fields() {
		if v.Kind() == reflect.Uint64 {
			m[f.Tag.Get("count")] = v.Uint()
		}
	}
	return m
}
