package rpcrdma_test

import (
	"fmt"
	"strings"
	"testing"

	codec "github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// compoundOf is a COMPOUND of NFS 4.1: the operations have their words already.
func compoundOf(xid uint32, count int, words ...any) []byte {
	return callOf(xid, nfs, 4, 1, func(e *xdr.Encoder) {
		e.Opaque([]byte("tag"))
		e.Uint32(1)
		e.Uint32(uint32(count))
		encodeWords(e, words)
	})
}

// encodeWords encodes integers as words, strings as opaques with their length, and fixed octets as they are.
func encodeWords(e *xdr.Encoder, words []any) {
	for _, w := range words {
		switch w := w.(type) {
		case int:
			e.Uint32(uint32(w))
		case string:
			e.Opaque([]byte(w))
		case []byte:
			e.Fixed(w)
		}
	}
}

// TestOperations checks that each operation's arguments are passed over exactly: what follows it has its name (RFC 8881, 7862).
func TestOperations(t *testing.T) {
	s16, h := make([]byte, 16), make([]byte, 8)
	attributes := []any{2, 5, 6, "values"}
	with := func(before []any, after ...any) []any { return append(append([]any{}, before...), after...) }
	for _, c := range []struct {
		name  string
		words []any
	}{
		{"ACCESS", []any{3, 31}}, {"CLOSE", []any{4, 1, s16}}, {"COMMIT", []any{5, h, 9}}, {"CREATE", with([]any{6, 5, "target", "name"}, attributes...)}, {"CREATE", with([]any{6, 3, 1, 2, "name"}, attributes...)},
		{"CREATE", with([]any{6, 2, "name"}, attributes...)}, {"DELEGPURGE", []any{7, h}}, {"DELEGRETURN", []any{8, s16}}, {"GETATTR", []any{9, 3, 1, 2, 3}}, {"GETFH", []any{10}}, {"LINK", []any{11, "name"}},
		{"LOCK", []any{12, 1, 0, h, h, 1, 7, s16, 8, h, "owner"}}, {"LOCK", []any{12, 1, 0, h, h, 0, s16, 8}}, {"LOCKT", []any{13, 1, h, h, h, "owner"}}, {"LOCKU", []any{14, 1, 2, s16, h, h}},
		{"LOOKUP", []any{15, "abc"}}, {"LOOKUPP", []any{16}}, {"NVERIFY", with([]any{17}, attributes...)}, {"OPEN", []any{18, 1, 2, 3, h, "owner", 0, 0, "name"}},
		{"OPEN", with(with([]any{18, 1, 2, 3, h, "owner", 1, 1}, attributes...), 1, 2)}, {"OPEN", []any{18, 1, 2, 3, h, "owner", 1, 2, h, 2, s16, "name"}},
		{"OPEN", with(with([]any{18, 1, 2, 3, h, "owner", 1, 3, h}, attributes...), 4)}, {"OPEN", []any{18, 1, 2, 3, h, "owner", 0, 5, s16}}, {"OPEN", []any{18, 1, 2, 3, h, "owner", 0, 3, "name"}},
		{"OPEN", []any{18, 1, 2, 3, h, "owner", 0, 6}}, {"OPENATTR", []any{19, 1}}, {"OPEN_CONFIRM", []any{20, s16, 1}}, {"OPEN_DOWNGRADE", []any{21, s16, 1, 2, 3}}, {"PUTFH", []any{22, "handle"}},
		{"PUTPUBFH", []any{23}}, {"PUTROOTFH", []any{24}}, {"READ", []any{25, s16, h, 100}}, {"READDIR", []any{26, h, h, 1, 2, 1, 7}}, {"READLINK", []any{27}}, {"REMOVE", []any{28, "name"}},
		{"RENAME", []any{29, "from", "to"}}, {"RENEW", []any{30, h}}, {"RESTOREFH", []any{31}}, {"SAVEFH", []any{32}}, {"SECINFO", []any{33, "name"}}, {"SETATTR", with([]any{34, s16}, attributes...)},
		{"SETCLIENTID", []any{35, h, "id", 5, "tcp", "addr", 6}}, {"SETCLIENTID_CONFIRM", []any{36, h, h}}, {"VERIFY", with([]any{37}, attributes...)}, {"WRITE", []any{38, s16, h, 2, "data"}},
		{"RELEASE_LOCKOWNER", []any{39, h, "owner"}}, {"BIND_CONN_TO_SESSION", []any{41, s16, 1, 0}}, {"EXCHANGE_ID", []any{42, h, "id", 1, 0, 1, "domain", "name", h, 7}}, {"EXCHANGE_ID", []any{42, h, "id", 1, 0, 0}},
		{"DESTROY_SESSION", []any{44, s16}}, {"FREE_STATEID", []any{45, s16}}, {"GETDEVICEINFO", []any{47, s16, 1, 2, 1, 9}}, {"LAYOUTGET", []any{50, 0, 1, 2, h, h, h, s16, 9}}, {"SECINFO_NO_NAME", []any{52, 0}},
		{"SEQUENCE", []any{53, s16, 1, 2, 3, 0}}, {"SET_SSV", []any{54, "ssv", "digest"}}, {"DESTROY_CLIENTID", []any{57, h}}, {"RECLAIM_COMPLETE", []any{58, 0}}, {"ALLOCATE", []any{59, s16, h, h}},
		{"DEALLOCATE", []any{62, s16, h, h}}, {"IO_ADVISE", []any{63, s16, h, h, 1, 3}}, {"OFFLOAD_CANCEL", []any{66, s16}}, {"OFFLOAD_STATUS", []any{67, s16}}, {"READ_PLUS", []any{68, s16, h, 9}}, {"SEEK", []any{69, s16, h, 1}},
		{"CLONE", []any{71, s16, s16, h, h, h}}, {"GETXATTR", []any{72, "name"}}, {"SETXATTR", []any{73, 1, "name", "value"}}, {"LISTXATTRS", []any{74, h, 9}}, {"REMOVEXATTR", []any{75, "name"}},
	} {
		s := newScript(t)
		s.begins()
		words := append(append([]any{}, c.words...), 58, 0) // RECLAIM_COMPLETE follows
		whole := compoundOf(2, 2, words...)
		s.send(client, v1(client, 2), whole)
		if want := "NFS 4.1 COMPOUND (" + c.name + ", RECLAIM_COMPLETE)"; s.last.Call.Name() != want {
			t.Errorf("%s, want %s", s.last.Call.Name(), want)
		}
		for n := range len(whole) { // whatever is cut is told as far as it goes
			s := newScript(t)
			s.begins()
			s.send(client, v1(client, 2), whole[:n])
			if m := s.last; m.Call != nil && m.Call.Compound != nil && (m.Call.Compound.Count != 2 || len(m.Call.Compound.Operations) > 2) {
				t.Errorf("%s cut at %d: %+v", c.name, n, m.Call.Compound)
			}
		}
	}
}

// TestCompounds checks COMPOUNDs that are not read to the end, those with a part in a chunk, whole ones in a chunk, and those of the server.
func TestCompounds(t *testing.T) {
	s16, h := make([]byte, 16), make([]byte, 8)
	getattrs := func(n int) (words []any) {
		for range n {
			words = append(words, 9, 1, 1)
		}
		return words
	}
	for _, c := range []struct {
		name string
		run  func(s *script)
		want string
	}{
		{"the last operation has no known end", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 1, 43, 1, 2, 3)) }, "NFS 4.1 COMPOUND (CREATE_SESSION)"},
		{"operations follow it", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 3, 24, 60, 1, 2, 3)) }, "NFS 4.1 COMPOUND (PUTROOTFH, COPY and 1 more)"},
		{"an operation without a name", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 3, 24, 99, 1)) }, "NFS 4.1 COMPOUND (PUTROOTFH and 2 more)"},
		{"none with a name", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 3, 99, 1)) }, "NFS 4.1 COMPOUND (3 operations)"},
		{"more than are read", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 40, getattrs(40)...)) }, "NFS 4.1 COMPOUND (" + strings.Repeat("GETATTR, ", 15) + "GETATTR and 24 more)"},
		{"no operations", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 0)) }, "NFS 4 COMPOUND"},
		{"keys that protect the state", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 2, 42, h, "id", 1, 2, 9, 9)) }, "NFS 4.1 COMPOUND (EXCHANGE_ID and 1 more)"},
		{"no way to open", func(s *script) { s.send(client, v1(client, 2), compoundOf(2, 2, 18, 1, 2, 3, h, "owner", 1, 9, 10)) }, "NFS 4.1 COMPOUND (OPEN and 1 more)"},
		{"data in a Read chunk", func(s *script) {
			whole := compoundOf(2, 3, 53, s16, 1, 2, 3, 0, 38, s16, h, 2, 5001, 9, 1, 1)
			h := v1(client, 2)
			h.Reads = []codec.ReadChunk{{Position: uint32(len(whole) - 12), Segments: segments(5, 5001)}}
			s.send(client, h, whole)
		}, "NFS 4.1 COMPOUND (SEQUENCE, WRITE, GETATTR)"},
		{"data in two Read chunks", func(s *script) {
			whole := compoundOf(2, 3, 38, s16, h, 2, 5001, 38, s16, h, 2, 6000, 9, 1, 1)
			h := v1(client, 2)
			first, second := uint32(len(whole)-12-36), uint32(len(whole)-12+5004)
			h.Reads = []codec.ReadChunk{{Position: first, Segments: segments(5, 5001)}, {Position: second, Segments: segments(6, 6000)}}
			s.send(client, h, whole)
		}, "NFS 4.1 COMPOUND (WRITE, WRITE, GETATTR)"},
		{"a whole Call in a chunk", func(s *script) {
			whole := append(compoundOf(2, 2, 24, 9, 1, 1), make([]byte, 3000)...)
			h := v1(client, 2)
			h.Type = codec.TypeNoMsg
			h.Reads = []codec.ReadChunk{{Segments: segments(5, uint32(len(whole)))}}
			s.send(client, h, nil)
			s.fetch(server, h.Reads[0].Segments[0], whole)
		}, "NFS 4.1 COMPOUND (PUTROOTFH, GETATTR)"},
		{"a callback", func(s *script) {
			s.send(server, v1(server, 2), callOf(2, 0x40000000, 1, 1, func(e *xdr.Encoder) {
				encodeWords(e, []any{"", 1, 77, 2, 11, s16, 1, 2, 3, 0, 1, s16, 1, 5, 6, 4, s16, 1, "handle"})
			}))
		}, "NFS callback 4.1 CB_COMPOUND (CB_SEQUENCE, CB_RECALL)"},
	} {
		s := newScript(t)
		s.begins()
		if c.run(s); s.last.Call.Name() != c.want {
			t.Errorf("%s: %q, want %q", c.name, s.last.Call.Name(), c.want)
		}
	}
}

// TestStatusOfCompounds checks that the operation at which a COMPOUND ended is told with its status.
func TestStatusOfCompounds(t *testing.T) {
	for _, c := range []struct {
		status, results int
		want            string
	}{
		{0, 3, "success"}, {2, 2, "NFS4ERR_NOENT at LOOKUP"}, {10008, 1, "NFS4ERR_DELAY at PUTROOTFH"}, {99, 3, "status 99 at GETATTR"}, {10022, 0, "NFS4ERR_STALE_CLIENTID"}, {10022, 9, "NFS4ERR_STALE_CLIENTID"},
	} {
		s := newScript(t)
		s.begins()
		s.send(client, v1(client, 2), compoundOf(2, 3, 24, 15, "name", 9, 1, 1))
		s.send(server, reply1(server, 2, 64), replyOf(2, func(e *xdr.Encoder) { encodeWords(e, []any{c.status, "tag", c.results}) }))
		if got := s.last.Status.String(); got != c.want || s.last.Status.Refused() != (c.status != 0) {
			t.Errorf("%d: %q, want %q", c.status, got, c.want)
		}
	}
}

// TestInlineDataOfCompounds checks that data of a WRITE of NFS 4 without a chunk are found, and those in a chunk are not.
func TestInlineDataOfCompounds(t *testing.T) {
	s16, h := make([]byte, 16), make([]byte, 8)
	for _, n := range []int{1000, 1024, 3000} {
		s := newScript(t)
		s.begins()
		s.send(client, v1(client, 2), compoundOf(2, 3, 24, 38, s16, h, 2, strings.Repeat("x", n), 9, 1, 1))
		want := "[]"
		if n >= 1024 {
			want = "[inline 1 at 5/0 of 0: NFS 4.1 COMPOUND (PUTROOTFH, WRITE, GETATTR)]"
			if n > 1400 {
				want = strings.Replace(want, "at 5", "at 7", 1)
			}
		}
		if got := fmt.Sprint(s.found()); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
