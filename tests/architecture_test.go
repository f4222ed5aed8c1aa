package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dgrdma/dgrdma/"

// allowed lists, for every package, what it may import beside the standard
// library. Tests may import anything.
var allowed = map[string][]string{
	"frame":                    {},
	"frame/captured":           {"frame", "capture", "seal/datagram", "golang.org/x/net/bpf"},
	"frame/dissect":            {"frame", "seal/datagram", "github.com/google/gopacket"},
	"capture":                  {"golang.org/x/sys/unix", "golang.org/x/net/bpf", "github.com/mdlayher/packet"},
	"capture/capturetest":      {"frame", "seal", "github.com/google/gopacket"},
	"capture/records":          {"capture"},
	"capture/tcp":              {"capture"},
	"inspect/iwarp":            {"capture", "capture/tcp", "rdmap", "rdmap/ddp", "rdmap/mpa"},
	"inspect/rpcrdma":          {"capture/tcp", "inspect/iwarp", "rdmap", "rpcrdma", "xdr"},
	"inspect/text":             {"capture", "capture/tcp", "frame", "frame/captured", "inspect/iwarp", "inspect/rpcrdma", "rpcrdma", "rdmap", "rdmap/mpa", "seal/datagram"},
	"inspect":                  {"ack", "capture", "capture/tcp", "frame", "frame/captured", "inspect/iwarp", "inspect/rpcrdma", "rdmap", "rdmap/ddp", "rdmap/mpa", "rpcrdma", "seal/datagram"},
	"inspect/page":             {"inspect"},
	"url":                      {},
	"nfs3":                     {"rpc", "xdr"},
	"nfs3/localfs":             {"nfs3", "golang.org/x/sys/unix"},
	"nfs3/nfs3test":            {"nfs3"},
	"rpcrdma":                  {"xdr"},
	"xdr":                      {},
	"rpc":                      {"internal/tcpinfo", "rpcrdma", "verbs", "xdr", "golang.org/x/sys/unix"},
	"rpc/portmap":              {"rpc", "xdr"},
	"internal/emulator":        {"transport/bottleneck", "golang.org/x/sys/unix"},
	"internal/namespace":       {"github.com/vishvananda/netlink", "github.com/vishvananda/netns", "golang.org/x/sys/unix"},
	"internal/patience":        {},
	"internal/places":          {},
	"internal/refused":         {},
	"internal/strangers":       {},
	"internal/tcpinfo":         {"golang.org/x/sys/unix"},
	"transport":                {},
	"transport/sealed":         {"ack", "frame", "seal", "transport"},
	"transport/bottleneck":     {"github.com/HdrHistogram/hdrhistogram-go"},
	"transport/simnet":         {"transport", "transport/bottleneck", "transport/internal/harm"},
	"transport/tap":            {"transport"},
	"transport/lossy":          {"transport", "transport/internal/harm"},
	"transport/internal/harm":  {},
	"transport/udp":            {"transport", "internal/refused", "transport/internal/mmsg", "transport/internal/rtnl", "golang.org/x/sys/unix"},
	"transport/ether":          {"transport", "internal/patience", "transport/internal/mmsg", "transport/internal/rtnl", "golang.org/x/sys/unix", "golang.org/x/net/bpf", "github.com/mdlayher/packet", "github.com/mdlayher/ethernet"},
	"transport/internal/mmsg":  {"internal/patience", "golang.org/x/sys/unix"},
	"transport/internal/rtnl":  {"golang.org/x/sys/unix"},
	"ack":                      {"frame"},
	"seal/datagram":            {},
	"seal/gcm":                 {"golang.org/x/sys/cpu"},
	"seal":                     {"seal/datagram", "seal/gcm", "github.com/flynn/noise", "golang.org/x/crypto/chacha20poly1305", "golang.org/x/crypto/curve25519", "golang.org/x/sys/cpu"},
	"settings":                 {"ack", "frame", "transport"},
	"endpoint/admission":       {"ack", "frame", "internal/strangers", "seal/datagram", "transport"},
	"endpoint/congestion":      {"ack"},
	"endpoint/foreign":         {"ack", "frame", "endpoint/reassembly", "settings"},
	"endpoint/outgoing":        {"transport"},
	"endpoint/pathmtu":         {"ack"},
	"endpoint/queue":           {},
	"endpoint/reassembly":      {"frame"},
	"endpoint/run":             {"ack", "internal/patience"},
	"endpoint/segmentation":    {"frame"},
	"endpoint/session":         {"ack", "frame"},
	"endpoint/space":           {},
	"examples/dgrdma-filecopy": {"link"},
	"examples/dgrdma-requests": {"link"},
	"examples/dgrdma-pipeline": {"link"},
	"examples/dgrdma-ring":     {"dgrdma"},
	"examples/dgrdma-web":      {"link", "link/netconn"},
	"examples/dgrdma-kv":       {"verbs"},
	"examples/dgrdma-counter":  {"verbs"},
	"examples/dgrdma-log":      {"verbs"},
	"examples/dgrdma-files":    {"rpc", "verbs", "xdr"},
	"examples/dgrdma-notices":  {"rpc", "verbs", "xdr"},
	"examples/dgrdma-faulty":   {"rpcrdma", "verbs"},
	"examples/gonfs":           {"nfs3", "rpc", "verbs", "xdr", "github.com/go-git/go-billy/v5", "github.com/willscott/go-nfs"}, // a module of its own
	"link":                     {"dgrdma", "endpoint/space", "link/budget", "url"},
	"link/budget":              {},
	"link/stream":              {"dgrdma", "link", "golang.org/x/sys/unix"},
	"link/netconn":             {"dgrdma", "link", "url"},
	"bench":                    {"dgrdma", "link", "rdmap/mpa", "url", "verbs", "github.com/HdrHistogram/hdrhistogram-go", "golang.org/x/sys/unix"},
	"opencpi":                  {"dgrdma", "link", "url"},
	"verbs":                    {"internal/patience", "internal/refused", "internal/strangers", "rdmap", "rdmap/ddp", "rdmap/memory", "rdmap/mpa"},
	"verbs/latency":            {"internal/places", "verbs"},
	"verbs/rping":              {"verbs"},
	"rdmap":                    {"rdmap/ddp"},
	"rdmap/ddp":                {},
	"rdmap/memory":             {"rdmap/ddp", "golang.org/x/sys/unix"},
	"rdmap/mpa":                {"internal/patience", "internal/tcpinfo", "rdmap/ddp", "golang.org/x/sys/unix"},
	"metrics":                  {"github.com/prometheus/client_golang"},
	"metrics/watch":            {"dgrdma", "link", "metrics", "nfs3", "rpc", "verbs"},
	"dgrdma": {
		"ack", "endpoint/admission", "endpoint/congestion", "endpoint/foreign", "endpoint/outgoing", "endpoint/pathmtu", "endpoint/queue", "endpoint/reassembly", "endpoint/run", "endpoint/segmentation", "endpoint/session", "frame", "internal/refused", "seal", "settings", "transport",
		"transport/ether", "transport/sealed", "transport/udp", "url",
	},
	"cmd/dgrdmacat":            {"bench", "dgrdma", "internal/emulator", "internal/namespace", "internal/places", "internal/refused", "settings", "link", "link/stream", "capture", "frame", "frame/captured", "inspect/text", "transport", "transport/simnet", "transport/tap", "transport/ether", "transport/lossy", "transport/udp", "url", "golang.org/x/sys/unix", "inspect", "inspect/iwarp", "inspect/rpcrdma", "inspect/page", "capture/tcp", "rdmap", "rdmap/ddp", "metrics", "metrics/watch", "inspect/wireshark", "rdmap/mpa", "verbs", "verbs/latency", "verbs/rping", "nfs3", "nfs3/localfs", "rpc", "rpc/portmap", "rpcrdma", "xdr"},
	"inspect/wireshark":        {},
	"release":                  {},
	"tests/peers":              {"frame", "transport"},
	"tests/worlds":             {"ack", "dgrdma", "frame", "transport/simnet"},
	"tests/oracle":             {"dgrdma", "frame", "tests/worlds"},
	"tests/siw/exercise":       {},
	"tests/siw/exercise/guest": {"tests/siw/exercise"},
	"tests/soak":               {"tests/netns", "tests/soak/round"},
	"tests/soak/round": {
		"dgrdma", "frame", "link", "seal", "settings", "tests/netns", "tests/oracle", "tests/worlds", "transport", "transport/ether", "transport/lossy", "transport/simnet",
		"transport/tap", "transport/udp", "golang.org/x/sys/unix",
	},
	"tests/crash":   {"dgrdma", "link", "tests/netns", "tests/worlds", "golang.org/x/sys/unix"},
	"tests/fixture": {"golang.org/x/net/dns/dnsmessage"},
	"tests/fuzz":    {},
	"tests/mutate":  {},
	"tests/quic":    {"github.com/quic-go/quic-go"}, // a module of its own
	"tests/rows":    {"bench", "dgrdma", "internal/emulator", "link", "link/netconn", "link/stream", "transport/bottleneck", "nfs3", "nfs3/localfs", "rpc", "seal", "tests/netns", "verbs", "xdr", "golang.org/x/sys/unix"},
	"tests/netns": {
		"internal/emulator", "internal/namespace",
		"github.com/vishvananda/netlink", "github.com/vishvananda/netns", "github.com/google/nftables", "golang.org/x/sys/unix",
	},
}

// forbidden names standard packages that a package must not import, and why.
var forbidden = map[string]map[string]string{
	"ack":                   {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"rdmap":                 {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines", "time": "it is driven"},
	"rdmap/ddp":             {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines", "time": "it has no state"},
	"capture/tcp":           {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"rpcrdma":               {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"xdr":                   {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines", "time": "it has no state", "reflect": "types encode themselves"},
	"inspect/iwarp":         {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"inspect/rpcrdma":       {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"frame":                 {"net": "it does no I/O", "os": "it does no I/O", "time": "it has no state"},
	"transport/bottleneck":  {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"endpoint/admission":    {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"endpoint/congestion":   {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"endpoint/foreign":      {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"endpoint/outgoing":     {"net": "it does no I/O", "os": "it does no I/O", "time": "nothing in it depends on time"},
	"endpoint/pathmtu":      {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines"},
	"endpoint/queue":        {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines", "time": "it has no clock"},
	"endpoint/segmentation": {"net": "it does no I/O", "os": "it does no I/O", "sync": "it has no goroutines", "time": "it has no state"},
	"endpoint/run":          {"os": "sockets are the transports' business", "log/slog": "the engine tells what happens"},
}

// onlyUnsafe are the files that may import unsafe.
var onlyUnsafe = []string{"dgrdma/completion_word.go", "dgrdma/memory.go", "rdmap/memory/atomic.go", "rdmap/mpa/socket.go", "seal/gcm/overlap_amd64.go"}

func TestImportsFollowTheDesign(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != ".." || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		seen++
		room := filepath.ToSlash(filepath.Dir(name))
		may, known := allowed[room]
		if !known {
			t.Errorf("%s: package %s is not in the design's table of imports; add it there", name, room)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if why := offence(name, room, imported, may); why != "" {
				t.Errorf("%s imports %s: %s", name, imported, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("looked at %d files only: the walk went astray", seen)
	}
}

func offence(file, room, imported string, may []string) string {
	if imported == "unsafe" && !strings.HasPrefix(room, "transport") && !slices.Contains(onlyUnsafe, file) {
		return "unsafe is for the transports and " + strings.Join(onlyUnsafe, ", ")
	}
	if imported == "C" {
		return "the library does without cgo"
	}
	if why, bad := forbidden[room][imported]; bad {
		return why
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // standard library
	}
	own, inside := strings.CutPrefix(imported, module)
	for _, m := range may {
		if inside && own == m || !inside && (imported == m || strings.HasPrefix(imported, m+"/")) {
			return ""
		}
	}
	return room + " may import only " + strings.Join(append([]string{"the standard library"}, may...), ", ")
}

func TestOffencesAreNamed(t *testing.T) {
	for _, c := range []struct{ file, room, imported, want string }{
		{"ack/x.go", "ack", module + "dgrdma", "may import only"},
		{"dgrdma/x.go", "dgrdma", module + "transport/simnet", "may import only"},
		{"dgrdma/x.go", "dgrdma", "unsafe", "unsafe"},
		{"frame/x.go", "frame", "github.com/google/gopacket", "may import only"},
		{"dgrdma/x.go", "dgrdma", "C", "cgo"},
		{"ack/x.go", "ack", module + "frame", ""},
	} {
		got := offence(c.file, c.room, c.imported, allowed[c.room])
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s importing %s: %q, want %q", c.file, c.imported, got, c.want)
		}
	}
}
