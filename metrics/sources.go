package metrics

import (
	"fmt"
	"slices"
)

// source is a [Source], or an [RDMASource].
type source[T any] interface {
	Of() any
	Look() (T, bool)
}

// sources are those of one kind, each with a name that no other has. The collector guards them.
type sources[T any] struct {
	name func(*T) *string
	all  []named[T]
}

type named[T any] struct {
	source[T]
	name string
}

// add adds a source, or puts it in the place of one of the same thing.
func (s *sources[T]) add(x source[T]) {
	v, ok := x.Look()
	if !ok {
		return
	}
	s.prune()
	for i := range s.all {
		if s.all[i].Of() == x.Of() {
			s.all[i].source = x
			return
		}
	}
	s.all = append(s.all, named[T]{x, s.unused(*s.name(&v))})
}

// unused makes a name that no other source has: endpoints of simulated networks, or of
// other network namespaces, may have the same id and address.
func (s *sources[T]) unused(base string) string {
	name := base
	for n := 2; slices.ContainsFunc(s.all, func(x named[T]) bool { return x.name == name }); n++ {
		name = fmt.Sprintf("%s#%d", base, n)
	}
	return name
}

// prune removes the sources that are closed.
func (s *sources[T]) prune() {
	s.all = slices.DeleteFunc(s.all, func(x named[T]) bool {
		_, ok := x.Look()
		return !ok
	})
}

// look returns snapshots of sources, in the order in which they were added.
func look[T any](of []named[T], name func(*T) *string) []T {
	all := make([]T, 0, len(of))
	for _, x := range of {
		if v, ok := x.Look(); ok {
			*name(&v) = x.name
			all = append(all, v)
		}
	}
	return all
}
