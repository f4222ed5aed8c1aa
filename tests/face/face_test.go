// Package face writes what package dgrdma shows of the rooms below. It imports none of them,
// so that it works while they and package dgrdma do not fit each other.
package face

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write what package dgrdma shows of the rooms below")

// form is how a type of the rooms below stands in package dgrdma.
type form int

const (
	// same is an alias, for values that the engine and the program share without a
	// copy. go doc shows no more of an alias than its comment: all is in there.
	same form = iota
	// handle is a type of its own around the engine's, with its methods.
	handle
	// copied is the declaration itself, with the types of package dgrdma in it.
	copied
)

// face are the types that a program meets in package dgrdma and that are declared below.
var face = []struct {
	file, from, name, as string
	form                 form
}{
	{"face_handles.go", "endpoint", "Conn", "Conn", handle},
	{"face_handles.go", "endpoint", "Region", "Region", handle},
	{"face_handles.go", "sched", "Waiter", "Waiter", handle},
	{"face_config.go", "endpoint", "Config", "Config", copied},
	{"face_config.go", "endpoint", "Memory", "Memory", copied},
	{"face_config.go", "endpoint", "Placed", "Placed", copied},
	{"face_config.go", "endpoint", "PerConn", "PerConn", copied},
	{"face_config.go", "endpoint", "Event", "Event", copied},
	{"face_services.go", "endpoint", "Service", "Service", copied},
	{"face_services.go", "endpoint", "Handler", "Handler", copied},
	{"face_services.go", "endpoint", "Channel", "Channel", handle},
	{"face_services.go", "endpoint", "Flow", "Flow", handle},
	{"face_services.go", "endpoint", "Letter", "Letter", same},
	{"face_services.go", "endpoint", "ServiceError", "ServiceError", same},
	{"face_config.go", "endpoint", "EventKind", "EventKind", same},
	{"face_config.go", "endpoint", "Trace", "Trace", same},
	{"face_config.go", "ack", "Controller", "Controller", same},
	{"face_config.go", "ack", "Instant", "Instant", same},
	{"face_peers.go", "endpoint", "Peer", "Peer", same},
	{"face_peers.go", "endpoint", "PeerName", "PeerName", same},
	{"face_peers.go", "endpoint", "Profile", "Profile", same},
	{"face_peers.go", "endpoint", "AckPolicy", "AckPolicy", same},
	{"face_peers.go", "endpoint", "PeerError", "PeerError", same},
	{"face_peers.go", "endpoint", "NarrowError", "NarrowError", same},
	{"face_peers.go", "endpoint", "IDError", "IDError", same},
	{"face_values.go", "endpoint", "Transaction", "Transaction", same},
	{"face_values.go", "endpoint", "CompletionWord", "CompletionWord", same},
	{"face_values.go", "endpoint", "Segment", "Segment", same},
	{"face_stats.go", "endpoint", "Stats", "Stats", same},
	{"face_stats.go", "endpoint", "ConnStats", "ConnStats", same},
	{"face_stats.go", "endpoint", "Counters", "Counters", same},
	{"face_stats.go", "endpoint", "Reason", "Reason", same},
	{"face_stats.go", "endpoint", "Times", "Times", same},
	{"face_stats.go", "endpoint", "Histogram", "Histogram", same},
	{"face_wire.go", "frame", "EndpointID", "EndpointID", same},
	{"face_wire.go", "frame", "Seq", "Seq", same},
	{"face_wire.go", "frame", "Message", "Message", same},
	{"face_wire.go", "frame", "Frame", "Frame", same},
	{"face_wire.go", "frame", "Header", "Header", same},
	{"face_wire.go", "frame", "Cursor", "Cursor", same},
	{"face_wire.go", "frame", "Hello", "Hello", same},
	{"face_wire.go", "frame", "Identity", "Identity", same},
	{"face_wire.go", "frame", "Stamp", "Stamp", same},
	{"face_wire.go", "frame", "SizeProbe", "SizeProbe", same},
	{"face_wire.go", "frame", "Services", "ServiceList", same},
	{"face_wire.go", "frame", "Service", "ServiceEntry", same},
	{"face_wire.go", "frame", "ServiceName", "ServiceName", same},
	{"face_wire.go", "transport", "Addr", "Addr", same},
	{"face_wire.go", "transport", "Kind", "AddrKind", same},
	{"face_wire.go", "transport", "Conn", "Transport", same},
	{"face_wire.go", "transport", "Datagram", "Datagram", same},
	{"face_wire.go", "transport", "Outgoing", "Outgoing", same},
	{"face_wire.go", "transport", "Caps", "Caps", same},
	{"face_wire.go", "transport", "Stats", "TransportStats", same},
}

// functions of the rooms below that are there, too.
var functions = []struct{ file, from, name string }{
	{"face_peers.go", "endpoint", "Native"},
	{"face_peers.go", "endpoint", "FPGA"},
	{"face_peers.go", "endpoint", "OpenCPI"},
	{"face_peers.go", "endpoint", "OpenCPI2"},
	{"face_peers.go", "endpoint", "Legacy"},
	{"face_peers.go", "endpoint", "ProfileByName"},
	{"face_values.go", "endpoint", "Word"},
	{"face_config.go", "endpoint", "Swallow"},
	{"face_stats.go", "endpoint", "HistogramBound"},
	{"face_wire.go", "transport", "UDPAddr"},
	{"face_wire.go", "transport", "EtherAddr"},
}

// byHand are methods of handles that are written elsewhere: they convert what they
// return.
var byHand = []string{"Conn.Memory", "Conn.Channel", "Channel.Conn", "Channel.Handler", "Channel.Flow", "Flow.Conn"}

// notHere are fields that package dgrdma sets.
var notHere = []string{"Config.Region"}

// paths are the rooms below.
var paths = map[string]string{
	"endpoint": "endpoint", "sched": "endpoint/sched", "frame": "frame", "transport": "transport", "ack": "ack",
}

// TestFaceIsWritten: what package dgrdma declares for the rooms below says what they do. Whoever
// changes them writes it anew: go test ./tests/face -write.
func TestFaceIsWritten(t *testing.T) {
	rooms := make(map[string]*room)
	for name, path := range paths {
		rooms[name] = readRoom(t, name, filepath.Join("..", "..", path))
	}
	files := make(map[string]*bytes.Buffer)
	in := func(name string) *bytes.Buffer {
		if files[name] == nil {
			files[name] = new(bytes.Buffer)
		}
		return files[name]
	}
	for _, f := range face {
		r := rooms[f.from]
		if r.types[f.name] == nil {
			t.Fatalf("%s has no type %s", f.from, f.name)
		}
		switch f.form {
		case same:
			r.alias(in(f.file), f.name, f.as)
		case handle:
			r.handle(in(f.file), f.name)
		case copied:
			r.copied(in(f.file), f.name)
		}
		r.constants(in(f.file), f.name)
	}
	for _, f := range functions {
		rooms[f.from].function(in(f.file), f.name)
	}
	rooms["endpoint"].errors(in("face_errors.go"))
	for name, body := range files {
		var b bytes.Buffer
		b.WriteString("// Code generated by go test ./tests/face -write; DO NOT EDIT.\n\npackage dgrdma\n\nimport (\n")
		standard := true
		for _, path := range importsOf(body.String()) {
			if own := strings.Contains(path, "."); own && standard {
				b.WriteString("\n")
				standard = false
			}
			fmt.Fprintf(&b, "\t%q\n", path)
		}
		b.WriteString(")\n" + body.String())
		want, err := format.Source(b.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b.String())
		}
		name = filepath.Join("..", "..", "dgrdma", name)
		got, _ := os.ReadFile(name)
		if bytes.Equal(got, want) {
			continue
		}
		if !*write {
			t.Errorf("%s does not say what the rooms below do: go test ./tests/face -write", name)
			continue
		}
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func importsOf(body string) (all []string) {
	f, err := parser.ParseFile(token.NewFileSet(), "", "package x\n"+body, 0)
	if err != nil {
		panic(fmt.Sprintf("%v\n%s", err, body))
	}
	standard := []string{"context", "log/slog", "net/netip", "time"}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if !ok {
			return true
		}
		path := ""
		if p, own := paths[x.Name]; own {
			path = "github.com/dgrdma/dgrdma/" + p
		}
		for _, p := range standard {
			if filepath.Base(p) == x.Name {
				path = p
			}
		}
		if path != "" && !slices.Contains(all, path) {
			all = append(all, path)
		}
		return true
	})
	slices.SortFunc(all, func(a, b string) int {
		if own := strings.Contains(a, "."); own != strings.Contains(b, ".") {
			if own {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return all
}
