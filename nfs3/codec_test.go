package nfs3_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/xdr"
)

// message is a type of arguments or results.
type message interface {
	xdr.Marshaler
	xdr.Unmarshaler
}

// procedureTypes are the types of arguments and results of a procedure; nil is void.
type procedureTypes struct{ args, results func() message }

func typed[T any, P interface {
	*T
	message
}]() message {
	return P(new(T))
}

// nfsTypes are the types of NFS 3, and mountTypes those of MOUNT 3, by procedure.
var (
	nfsTypes = []procedureTypes{
		nfs3.ProcGetAttr:     {typed[nfs3.GetAttrArgs], typed[nfs3.GetAttrResult]},
		nfs3.ProcSetAttr:     {typed[nfs3.SetAttrArgs], typed[nfs3.ChangeResult]},
		nfs3.ProcLookup:      {typed[nfs3.LookupArgs], typed[nfs3.LookupResult]},
		nfs3.ProcAccess:      {typed[nfs3.AccessArgs], typed[nfs3.AccessResult]},
		nfs3.ProcReadLink:    {typed[nfs3.ReadLinkArgs], typed[nfs3.ReadLinkResult]},
		nfs3.ProcRead:        {typed[nfs3.ReadArgs], typed[nfs3.ReadResult]},
		nfs3.ProcWrite:       {typed[nfs3.WriteArgs], typed[nfs3.WriteResult]},
		nfs3.ProcCreate:      {typed[nfs3.CreateArgs], typed[nfs3.CreateResult]},
		nfs3.ProcMkdir:       {typed[nfs3.MkdirArgs], typed[nfs3.CreateResult]},
		nfs3.ProcSymlink:     {typed[nfs3.SymlinkArgs], typed[nfs3.CreateResult]},
		nfs3.ProcMknod:       {typed[nfs3.MknodArgs], typed[nfs3.CreateResult]},
		nfs3.ProcRemove:      {typed[nfs3.RemoveArgs], typed[nfs3.ChangeResult]},
		nfs3.ProcRmdir:       {typed[nfs3.RemoveArgs], typed[nfs3.ChangeResult]},
		nfs3.ProcRename:      {typed[nfs3.RenameArgs], typed[nfs3.RenameResult]},
		nfs3.ProcLink:        {typed[nfs3.LinkArgs], typed[nfs3.LinkResult]},
		nfs3.ProcReadDir:     {typed[nfs3.ReadDirArgs], typed[nfs3.ReadDirResult]},
		nfs3.ProcReadDirPlus: {typed[nfs3.ReadDirPlusArgs], typed[nfs3.ReadDirPlusResult]},
		nfs3.ProcFSStat:      {typed[nfs3.FSArgs], typed[nfs3.FSStatResult]},
		nfs3.ProcFSInfo:      {typed[nfs3.FSArgs], typed[nfs3.FSInfoResult]},
		nfs3.ProcPathConf:    {typed[nfs3.FSArgs], typed[nfs3.PathConfResult]},
		nfs3.ProcCommit:      {typed[nfs3.CommitArgs], typed[nfs3.CommitResult]},
	}
	mountTypes = []procedureTypes{
		nfs3.MountMnt:    {typed[nfs3.MountPath], typed[nfs3.MountResult]},
		nfs3.MountDump:   {nil, typed[nfs3.MountList]},
		nfs3.MountUmnt:   {typed[nfs3.MountPath], nil},
		nfs3.MountExport: {nil, typed[nfs3.ExportList]},
	}
)

// typesOf returns the arguments and results of all procedures, with their names.
func typesOf() map[string]func() message {
	all := map[string]func() message{}
	for of, types := range map[*rpc.Program][]procedureTypes{nfs3.Program: nfsTypes, nfs3.MountProgram: mountTypes} {
		for i, t := range types {
			if name := of.Name + " " + of.Procedures[i].Name; t.args != nil {
				all[name+" args"] = t.args
			}
			if name := of.Name + " " + of.Procedures[i].Name; t.results != nil {
				all[name+" results"] = t.results
			}
		}
	}
	return all
}

// sorted returns the keys of a map in their order, so that a seed means the same in each run.
func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// fill sets v to something random that can be encoded.
func fill(r *rand.Rand, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *nfs3.FileType:
		*x = nfs3.FileType(1 + r.IntN(7))
		return
	case *nfs3.Status:
		*x = []nfs3.Status{nfs3.OK, nfs3.OK, nfs3.OK, nfs3.ErrStale, nfs3.ErrJukebox, 77}[r.IntN(6)]
		return
	case *nfs3.Stable, *nfs3.CreateMode, *nfs3.SetTime:
		v.SetUint(uint64(r.IntN(3)))
		return
	case *nfs3.Handle:
		*x = nfs3.Handle(octets(r, nfs3.MaxHandle))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() >> r.IntN(64) & (1<<v.Type().Bits() - 1))
	case reflect.String:
		v.SetString(string(octets(r, 255)))
	case reflect.Pointer:
		if r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(octets(r, 2000))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(5), 9))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	default:
		panic(v.Type().String())
	}
}

func octets(r *rand.Rand, most int) []byte {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// flat returns the unreduced message, and the items that went by reference.
func flat(m xdr.Marshaler) ([]byte, []xdr.Item, []byte) {
	var e xdr.Encoder
	m.MarshalXDR(&e)
	return xdr.AppendFlat(nil, e.Bytes(), e.Items()), e.Items(), e.Bytes()
}

// TestRoundTrips checks that each type decodes what it encodes, inline and with its items by
// reference, and that it encodes the same octets again (ONC-008).
func TestRoundTrips(t *testing.T) {
	const seed = 20260
	r := rand.New(rand.NewPCG(seed, 1))
	types := typesOf()
	for _, name := range sorted(types) {
		for round := range 60 {
			value := types[name]()
			fill(r, reflect.ValueOf(value).Elem())
			whole, items, inline := flat(value)
			for how, decode := range map[string]func(*xdr.Decoder){
				"inline":       func(d *xdr.Decoder) { d.Reset(whole, nil) },
				"by reference": func(d *xdr.Decoder) { d.Reset(inline, items) },
			} {
				var d xdr.Decoder
				decode(&d)
				got := types[name]()
				fill(r, reflect.ValueOf(got).Elem()) // what was there must not matter
				got.UnmarshalXDR(&d)
				if err := d.Done(); err != nil {
					t.Fatalf("%s, seed %d, round %d, %s: %v\n%+v", name, seed, round, how, err, value)
				}
				if again, _, _ := flat(got); !bytes.Equal(whole, again) || len(d.Left()) > 0 {
					t.Fatalf("%s, seed %d, round %d, %s: % x, want % x", name, seed, round, how, again, whole)
				}
			}
		}
	}
}

// TestCutShort checks that each type refuses each message that lacks octets (ONC-008).
func TestCutShort(t *testing.T) {
	const seed = 20261
	r := rand.New(rand.NewPCG(seed, 1))
	types := typesOf()
	for _, name := range sorted(types) {
		for range 3 {
			value := types[name]()
			fill(r, reflect.ValueOf(value).Elem())
			whole, _, _ := flat(value)
			for n := range whole {
				var d xdr.Decoder
				d.Reset(whole[:n], nil)
				types[name]().UnmarshalXDR(&d)
				if !errors.Is(d.Done(), xdr.ErrInvalid) {
					t.Fatalf("%s, seed %d: %d octets of %d are enough", name, seed, n, len(whole))
				}
			}
		}
	}
}

// TestLongestResults checks that no results are longer than the program's table says, for a client
// that offers memory for them (NFSB-04), and that what travels by reference is what the table says
// (NFSB-01).
func TestLongestResults(t *testing.T) {
	const seed = 20262
	r := rand.New(rand.NewPCG(seed, 1))
	for of, types := range map[*rpc.Program][]procedureTypes{nfs3.Program: nfsTypes, nfs3.MountProgram: mountTypes} {
		for i, p := range of.Procedures {
			longest, args, results := 0, 0, 0
			for range 600 {
				if i < len(types) && types[i].results != nil {
					value := types[i].results()
					fill(r, reflect.ValueOf(value).Elem())
					_, items, inline := flat(value)
					longest, results = max(longest, len(inline)), max(results, len(items))
				}
				if i < len(types) && types[i].args != nil {
					value := types[i].args()
					fill(r, reflect.ValueOf(value).Elem())
					_, items, _ := flat(value)
					args = max(args, len(items))
				}
			}
			bound := p.MaxResults
			if bound == 0 {
				bound = 1024
			}
			if longest > bound || p.MaxResults > 0 && p.MaxResults < 1024 && p.Name != "MNT" && longest < bound-4*8 {
				t.Errorf("%s: results of %d octets, the table says %d", p.Name, longest, p.MaxResults)
			}
			if args != p.BulkArgs || results != p.BulkResults {
				t.Errorf("%s: %d and %d items by reference, the table says %d and %d", p.Name, args, results, p.BulkArgs, p.BulkResults)
			}
		}
	}
}

// TestBounds checks that what is longer than its bound, and what is outside of its enumeration, is
// invalid (ONC-008).
func TestBounds(t *testing.T) {
	handle := func(n int) func(*xdr.Encoder) {
		return func(e *xdr.Encoder) { e.Opaque(make([]byte, n)) }
	}
	words := func(n ...uint32) func(*xdr.Encoder) {
		return func(e *xdr.Encoder) {
			for _, v := range n {
				e.Uint32(v)
			}
		}
	}
	data := func(n int) func(*xdr.Encoder) {
		return func(e *xdr.Encoder) { e.Bulk(make([]byte, n)) }
	}
	type parts = []func(*xdr.Encoder)
	for name, c := range map[string]struct {
		into  message
		parts parts
		valid bool
	}{
		"a handle of 64":           {&nfs3.GetAttrArgs{}, parts{handle(64)}, true},
		"a handle of 65":           {&nfs3.GetAttrArgs{}, parts{handle(65)}, false},
		"a name of 256":            {&nfs3.LookupArgs{}, parts{handle(8), handle(256)}, true}, // the server answers it
		"a name of 1025":           {&nfs3.LookupArgs{}, parts{handle(8), handle(1025)}, false},
		"data of 1 MiB":            {&nfs3.WriteArgs{}, parts{handle(8), words(0, 0, 1<<20, 0), data(1 << 20)}, true},
		"data of more":             {&nfs3.WriteArgs{}, parts{handle(8), words(0, 0, 1<<20+1, 0), data(1<<20 + 1)}, false},
		"another count":            {&nfs3.WriteArgs{}, parts{handle(8), words(0, 0, 7, 0), data(8)}, false},
		"another count of READ":    {&nfs3.ReadResult{}, parts{words(0, 0, 7, 0), data(8)}, false},
		"a stability of 3":         {&nfs3.WriteArgs{}, parts{handle(8), words(0, 0, 8, 3), data(8)}, false},
		"a mode of 3":              {&nfs3.CreateArgs{}, parts{handle(8), handle(1), words(3, 0, 0)}, false},
		"a time of 3":              {&nfs3.SetAttrArgs{}, parts{handle(8), words(0, 0, 0, 0, 3, 0, 0)}, false},
		"a boolean of 2":           {&nfs3.SetAttrArgs{}, parts{handle(8), words(0, 0, 0, 0, 0, 0, 2)}, false},
		"a type of 0":              {&nfs3.MknodArgs{}, parts{handle(8), handle(1), words(0, 0, 0, 0)}, false},
		"a type of 8":              {&nfs3.MknodArgs{}, parts{handle(8), handle(1), words(8, 0, 0, 0)}, false},
		"a type that is not made":  {&nfs3.MknodArgs{}, parts{handle(8), handle(1), words(2)}, true},
		"a target of 4096":         {&nfs3.SymlinkArgs{}, parts{handle(8), handle(1), words(0, 0, 0, 0, 0, 0), data(4096)}, true},
		"a target of 4097":         {&nfs3.SymlinkArgs{}, parts{handle(8), handle(1), words(0, 0, 0, 0, 0, 0), data(4097)}, false},
		"a path of 1024":           {&nfs3.MountPath{}, parts{handle(1024)}, true},
		"a path of 1025":           {&nfs3.MountPath{}, parts{handle(1025)}, false},
		"a name of 256 in results": {&nfs3.ReadDirResult{}, parts{words(0, 0, 0, 0, 1, 0, 9), handle(256), words(0, 0, 0, 0, 0)}, false},
		"33 flavors":               {&nfs3.MountResult{}, parts{words(0), handle(8), words(33), words(make([]uint32, 33)...)}, false},
	} {
		var e xdr.Encoder
		for _, p := range c.parts {
			p(&e)
		}
		var d xdr.Decoder
		d.Reset(xdr.AppendFlat(nil, e.Bytes(), e.Items()), nil)
		c.into.UnmarshalXDR(&d)
		if err := d.Done(); (err == nil) != c.valid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
