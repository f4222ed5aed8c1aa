package endpoint

import (
	"reflect"
	"runtime"
	"strings"
	"sync"

	"github.com/dgrdma/dgrdma/endpoint/sched"
)

// scheduling begins the names of all that a scheduler does: callbacks run below it.
var scheduling = reflect.TypeFor[sched.Waiter]().PkgPath() + ".(*Scheduler["

// calling are the other functions below which callbacks run.
var calling = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	for _, f := range []any{(*Endpoint).add, (*Endpoint).Serve, (*Endpoint).newConn, (*Conn).reset, (*Conn).Stats} {
		names[runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()] = true
	}
	return names
})

// inCallback reports whether the caller is a callback, of this endpoint or another one:
// who waits there for the end of callbacks may wait for itself. Nothing but its stack
// tells one goroutine from others. This takes microseconds.
func inCallback() bool {
	names := calling()
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		for frames, more := runtime.CallersFrames(pcs[:n]), true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); names[f.Function] || strings.HasPrefix(f.Function, scheduling) {
				return true
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
