package rpcrdma

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/dgrdma/dgrdma/xdr"
)

// Details are what the octets of an RPC message say beyond its header, as far as they are in the capture.
type Details struct {
	Fields []Field
	Cut    bool // more follows that is not here, or that is malformed
}

// Field is one item of arguments, of results or of a credential.
type Field struct {
	Name   string // with underscores, as a key
	Kind   FieldKind
	Number uint64  // of NumberField
	Text   string  // of WordField and NameField
	Fields []Field // of GroupField
}

// FieldKind is which part of a Field has its value.
type FieldKind uint8

// Kinds of fields.
const (
	NumberField FieldKind = iota
	WordField             // such as UNSTABLE, a handle in hexadecimal, or a mode
	NameField             // octets of a name or a path: anything may be in it
	GroupField            // several, such as attributes
)

// fieldReader reads fields. After an error it adds none.
type fieldReader struct {
	xdr.Decoder
	fields  []Field
	reduced bool   // the last opaque is in a chunk
	moved   []byte // the beginning of what such a chunk moved
}

func (r *fieldReader) add(f Field) {
	if r.Err() == nil {
		r.fields = append(r.fields, f)
	}
}

func (r *fieldReader) number(name string, n uint64) { r.add(Field{Name: name, Number: n}) }

func (r *fieldReader) word(name, text string) {
	r.add(Field{Name: name, Kind: WordField, Text: text})
}

func (r *fieldReader) name(name string, b []byte) {
	r.add(Field{Name: name, Kind: NameField, Text: string(b)})
}

// group adds what read adds, as one field. What was read before an error stays.
func (r *fieldReader) group(name string, read func()) {
	before := r.fields
	r.fields = nil
	read()
	inside := r.fields
	if r.fields = before; len(inside) > 0 {
		r.fields = append(r.fields, Field{Name: name, Kind: GroupField, Fields: inside})
	}
}

func (r *fieldReader) details() *Details {
	if len(r.fields) == 0 && r.Err() == nil {
		return nil
	}
	return &Details{Fields: r.fields, Cut: r.Err() != nil}
}

// choice is the word of a number, if it has one.
func choice(words []string, n uint32) string {
	if uint64(n) < uint64(len(words)) && words[n] != "" {
		return words[n]
	}
	return fmt.Sprint(n)
}

var flavors = []string{"AUTH_NONE", "AUTH_SYS", "AUTH_SHORT", "AUTH_DH", 6: "RPCSEC_GSS", 7: "AUTH_TLS"}

const flavorSys = 1

// Bounds of AUTH_SYS (RFC 5531).
const (
	maxMachine = 255
	maxGroups  = 16
)

// callOctets returns the octets of the Call that a message is, or that a Reply answers if that was fetched as a whole.
func (m *Message) callOctets() []byte {
	switch {
	case m.Call == nil:
		return nil
	case m.Kind == CallKind && !m.Call.special:
		return m.rpc
	case m.Kind == ReplyKind && m.Call.special:
		return m.Call.head
	}
	return nil
}

// Credential returns who the caller of a Call claims to be. Of a Call that was fetched as a whole it is known with the Reply.
func (m *Message) Credential() *Details {
	b := m.callOctets()
	if b == nil || !parseCall(b).Known {
		return nil
	}
	var r fieldReader
	r.Reset(b, nil)
	r.Fixed(24)
	flavor := r.Uint32()
	body := r.Opaque(maxAuth)
	r.word("flavor", choice(flavors, flavor))
	if r.Err() != nil || flavor != flavorSys {
		return r.details()
	}
	r.Reset(body, nil)
	r.Uint32() // stamp
	machine := r.Opaque(maxMachine)
	r.number("uid", uint64(r.Uint32()))
	r.number("gid", uint64(r.Uint32()))
	r.group("groups", func() {
		for i := range r.Count(maxGroups, 4) {
			r.number(fmt.Sprint(i), uint64(r.Uint32()))
		}
	})
	r.name("machine", machine)
	return r.details()
}

// Arguments returns those of a Call of NFS 3, MOUNT or NFSACL, nil if they are not known. Of a Call that was fetched as a whole they are known with
// the Reply, and so is the target that SYMLINK has in a Read chunk.
func (m *Message) Arguments() *Details {
	if k := m.Call; k != nil && m.Kind == ReplyKind && !k.special && len(k.target) > 0 && k.isNFS3(nfs3Symlink) {
		return &Details{Fields: []Field{{Name: "target", Kind: NameField, Text: strings.TrimRight(string(k.target), "\x00")}}}
	}
	b := m.callOctets()
	if b == nil {
		return nil
	}
	of := parseCall(b)
	items := of.arguments()
	if items == nil {
		return nil
	}
	if of.args == nil {
		return &Details{Cut: true}
	}
	r := fieldReader{reduced: len(m.Call.positions) > 0, moved: m.Call.target}
	r.Reset(of.args, nil)
	r.take(items)
	return r.details()
}

// Results returns those of a Reply to such a Call that was carried out, nil if they are not known.
func (m *Message) Results() *Details {
	if m.Kind != ReplyKind || m.Call == nil || !m.Status.Success() || m.rpc == nil {
		return nil
	}
	s := parseReply(m.rpc, &m.Call.RPC)
	items := m.Call.results(s.Result)
	if items == nil || !s.HasResult {
		return nil
	}
	placed := uint64(0)
	for _, w := range m.Header.Writes {
		placed += w.Length()
	}
	r := fieldReader{reduced: placed > 0, moved: m.Call.target}
	r.Reset(s.results, nil)
	r.Uint32() // the status
	r.take(items)
	return r.details()
}

func octets(b []byte) string { return hex.EncodeToString(b) }
