package nfs3_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// FuzzMessages decodes arguments and results of each procedure. What is decoded must be encoded to
// what is decoded to the same again (ONC-008).
func FuzzMessages(f *testing.F) {
	types := typesOf()
	names := sorted(types)
	r := rand.New(rand.NewPCG(1, 1))
	for i, name := range names {
		for range 3 {
			value := types[name]()
			fill(r, reflect.ValueOf(value).Elem())
			b, _, _ := flat(value)
			f.Add(uint8(i), b)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		name := names[int(which)%len(names)]
		var d xdr.Decoder
		d.Reset(b, nil)
		value := types[name]()
		value.UnmarshalXDR(&d)
		if d.Done() != nil {
			return
		}
		once, _, _ := flat(value)
		d.Reset(once, nil)
		again := types[name]()
		again.UnmarshalXDR(&d)
		twice, _, _ := flat(again)
		if d.Done() != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s: % x becomes % x, then % x: %v", name, b, once, twice, d.Err())
		}
	})
}
