package opencpi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The golden descriptors were laid out by hand from section 8.5 of the peers'
// facts. Each line is one field; x is the filler before it.

const softwareConsumerBytes = "" +
	"\x01" + // little endian
	"xxx" + "\x01\x00\x00\x00" + // type 1, at 4
	"\x01\x00\x00\x00" + // role: active flow control
	"\x42\x00\x00\x00" + // options: active flow control, flag is meta
	"\x04\x00\x00\x00" + // 4 buffers, at 16
	"\x80\x40\x00\x00" + // data at 0x4080
	"\x00\x08\x00\x00" + // pitch 2048
	"\x00\x08\x00\x00" + // size 2048
	"\x00\x70\x00\x00" + // metadata at 0x7000, at 32
	"\x10\x00\x00\x00" + // metadata pitch 16
	"\x10\x00\x00\x00" + // full flags at 0x10, at 40
	"\x04\x00\x00\x00" + // full flag size 4
	"\x50\x00\x00\x00" + // full flag pitch 80
	"\x03\x00\x00\x00" + // full flag value 3
	"\x60\x01\x00\x00" + // empty flags at 0x160, at 56
	"\x05\x00\x00\x00" + // empty flag size 5
	"\x08\x00\x00\x00" + // empty flag pitch 8
	"\x07\x00\x00\x00" + // empty flag value 7
	"\xef\xcd\xab\x89\x67\x45\x23\x01" + // port id 0x0123456789abcdef, at 72
	"\x52\x00\x00\x00" + // string of 81 characters and NUL, at 80
	"ocpi-udp-rdma:192.168.1.5:40123;6f9619ff-8b86-d011-b42d-00c04fc964ff.3145728.1.10" + "\x00" + // at 84
	"xx" + "\x88\x77\x66\x55\x44\x33\x22\x11" + // cookie 0x1122334455667788, at 168
	"\x08\x07\x06\x05\x04\x03\x02\x01" // address 0x0102030405060708

var softwareConsumer = Descriptor{
	Kind: KindConsumer, Role: RoleActiveFlowControl, Options: OptionActiveFlowControl | OptionFlagIsMeta,
	Buffers: 4, DataAddr: 0x4080, Pitch: 2048, Size: 2048, MetaAddr: 0x7000, MetaPitch: 16,
	FullFlagAddr: 0x10, FullFlagSize: 4, FullFlagPitch: 80, FullFlagValue: 3,
	EmptyFlagAddr: 0x160, EmptyFlagSize: 5, EmptyFlagPitch: 8, EmptyFlagValue: 7,
	PortID:   0x0123456789ABCDEF,
	Endpoint: "ocpi-udp-rdma:192.168.1.5:40123;6f9619ff-8b86-d011-b42d-00c04fc964ff.3145728.1.10",
	Cookie:   0x1122334455667788, Address: 0x0102030405060708,
}

const flowControlBytes = "" +
	"\x01" + // little endian
	"xxx" + "\x02\x00\x00\x00" + // type 2, at 4
	"\x00\x00\x00\x00" + // role: active message
	"\x41\x00\x00\x00" + // options: active message, flag is meta
	"\x03\x00\x00\x00" + // 3 buffers, at 16
	"\x00\x00\x01\x00" + // data at 0x10000
	"\x80\x08\x00\x00" + // pitch 2176
	"\x00\x08\x00\x00" + // size 2048
	"\x00\x00\x00\x00" + // metadata at 0, at 32
	"\x00\x00\x00\x00" + // metadata pitch 0
	"\x00\x00\x00\x00" + // full flags at 0, at 40
	"\x00\x00\x00\x00" + // full flag size 0
	"\x00\x00\x00\x00" + // full flag pitch 0
	"\x00\x00\x00\x00" + // full flag value 0
	"\x64\x40\x00\x00" + // empty flags at 0x4064, at 56
	"\x04\x00\x00\x00" + // empty flag size 4
	"\x04\x00\x00\x00" + // empty flag pitch 4
	"\x01\x00\x00\x00" + // empty flag value 1
	"\x09\x00\x00\x00\x00\x00\x00\x00" + // port id 9, at 72
	"\x1c\x00\x00\x00" + // string of 27 characters and NUL, at 80
	"ocpi-udp-rdma:10.1.2.3:7000" + "\x00" + // at 84, ends at 112: no filler
	"\x02\x00\x00\x00\x00\x00\x00\x00" + // cookie 2, at 112
	"\x03\x00\x00\x00\x00\x00\x00\x00" // address 3

var flowControl = Descriptor{
	Kind: KindConsumerFlowControl, Role: RoleActiveMessage, Options: OptionActiveMessage | OptionFlagIsMeta,
	Buffers: 3, DataAddr: 0x10000, Pitch: 2176, Size: 2048,
	EmptyFlagAddr: 0x4064, EmptyFlagSize: 4, EmptyFlagPitch: 4, EmptyFlagValue: 1,
	PortID: 9, Endpoint: "ocpi-udp-rdma:10.1.2.3:7000", Cookie: 2, Address: 3,
}

const cardConsumerBytes = "" +
	"\x00" + // big endian
	"xxx" + "\x00\x00\x00\x01" + // type 1, at 4
	"\x00\x00\x00\x01" + // role: active flow control
	"\x00\x00\x00\x62" + // options: active flow control, mandated role, flag is meta
	"\x00\x00\x00\x08" + // 8 buffers, at 16
	"\x0c\x00\x00\x00" + // data at 0x0c000000
	"\x00\x00\x10\x10" + // pitch 4112
	"\x00\x00\x10\x0a" + // size 4106
	"\x00\x00\x00\x00" + // metadata at 0, at 32
	"\x00\x00\x00\x00" + // metadata pitch 0
	"\xfc\x20\x00\x5c" + // full flag at 0xfc20005c, at 40
	"\x00\x00\x00\x04" + // full flag size 4
	"\x00\x00\x00\x00" + // full flag pitch 0: one for all buffers
	"\x00\x00\x00\x01" + // full flag value 1
	"\x00\x00\x00\x00" + // empty flags at 0, at 56
	"\x00\x00\x00\x00" + // empty flag size 0
	"\x00\x00\x00\x00" + // empty flag pitch 0
	"\x00\x00\x00\x00" + // empty flag value 0
	"\x00\x00\x00\x00\x00\x00\x0a\x0b" + // port id 0x0a0b, at 72
	"\x00\x00\x00\x2d" + // string of 44 characters and NUL, at 80
	"ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa" + "\x00" + // at 84
	"xxxxxxx" + "\x11\x22\x33\x44\x55\x66\x77\x88" + // cookie 0x1122334455667788, at 136
	"\xff\xff\xff\xff\xff\xff\xff\xfe" // address 0xfffffffffffffffe

var cardConsumer = Descriptor{
	Kind: KindConsumer, Role: RoleActiveFlowControl,
	Options: OptionActiveFlowControl | OptionMandatedRole | OptionFlagIsMeta,
	Buffers: 8, DataAddr: 0x0C000000, Pitch: 4112, Size: 4106,
	FullFlagAddr: 0xFC20005C, FullFlagSize: 4, FullFlagValue: 1,
	PortID: 0x0A0B, Endpoint: "ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa",
	Cookie: 0x1122334455667788, Address: 0xFFFFFFFFFFFFFFFE,
}

var goldenDescriptors = []struct {
	name       string
	bytes      string
	size       int
	descriptor Descriptor
	big        bool
}{
	{"software-consumer", softwareConsumerBytes, 184, softwareConsumer, false},
	{"flow-control", flowControlBytes, 128, flowControl, false},
	{"card-consumer", cardConsumerBytes, 152, cardConsumer, true},
}

func TestGoldenDescriptors(t *testing.T) {
	for _, g := range goldenDescriptors {
		t.Run(g.name, func(t *testing.T) {
			if len(g.bytes) != g.size {
				t.Fatalf("golden has %d bytes, counted %d", len(g.bytes), g.size)
			}
			got, err := ParseDescriptor([]byte(g.bytes))
			if err != nil {
				t.Fatal(err)
			}
			if got != g.descriptor {
				t.Errorf("got  %+v\nwant %+v", got, g.descriptor)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
			if g.big {
				return
			}
			// Alignment counts from the start of the descriptor.
			for before := range 9 {
				prefix := strings.Repeat("p", before)
				out, err := g.descriptor.AppendBinary([]byte(prefix))
				if err != nil {
					t.Fatal(err)
				}
				if string(out) != prefix+g.bytes {
					t.Errorf("behind %d bytes:\ngot  %q\nwant %q", before, out[before:], g.bytes)
				}
			}
		})
	}
}

// descriptorLayout says where fields start, as far as the endpoint does not
// move them.
var descriptorLayout = []struct {
	field string
	at    int
}{
	{"byte order", 0}, {"kind", 4}, {"role", 8}, {"options", 12}, {"buffers", 16}, {"data_addr", 20}, {"pitch", 24},
	{"size", 28}, {"meta_addr", 32}, {"meta_pitch", 36}, {"full_flag_addr", 40}, {"full_flag_size", 44},
	{"full_flag_pitch", 48}, {"full_flag_value", 52}, {"empty_flag_addr", 56}, {"empty_flag_size", 60},
	{"empty_flag_pitch", 64}, {"empty_flag_value", 68}, {"port_id", 72}, {"endpoint", 80},
}

func TestParseDescriptorTruncated(t *testing.T) {
	for _, g := range goldenDescriptors {
		cookie, address, stringAt := g.size-16, g.size-8, 84
		for n := range g.size {
			b := []byte(g.bytes)[:n:n]
			field, at := "address", address
			switch {
			case n < 84:
				for i, f := range descriptorLayout {
					end := 84
					if i+1 < len(descriptorLayout) {
						end = descriptorLayout[i+1].at
						if i == 0 {
							end = 1
						}
					}
					if n < end {
						field, at = f.field, f.at
						break
					}
				}
			case n < stringAt+len(g.descriptor.Endpoint)+1:
				field, at = "endpoint", stringAt
			case n < address:
				field, at = "cookie", cookie
			}
			checkParseFails(t, b, fmt.Sprintf("%s at offset %d: expected ", field, at))
		}
	}
}

func checkParseFails(t *testing.T, b []byte, part string) {
	t.Helper()
	d, err := ParseDescriptor(b)
	if !errors.Is(err, ErrDescriptor) || d != (Descriptor{}) {
		t.Errorf("%d bytes: got %+v, error %v, want one about %q", len(b), d, err, part)
		return
	}
	if !strings.HasPrefix(err.Error(), "opencpi: bad descriptor: ") || !strings.Contains(err.Error(), part) {
		t.Errorf("%d bytes: error %q, want one about %q", len(b), err, part)
	}
}

func TestParseDescriptorRefuses(t *testing.T) {
	header, _, _ := strings.Cut(flowControlBytes, "\x1c\x00\x00\x00ocpi")
	tail := "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00"
	long := strings.Repeat("a", 255)
	for _, c := range []struct {
		name, bytes, part string
	}{
		{"empty", "", "byte order at offset 0: expected 1 bytes, found 0"},
		{"byte-order", "\x02" + flowControlBytes[1:], "byte order at offset 0: expected 0 or 1, found 2"},
		{"byte-order-x", "x" + flowControlBytes[1:], "byte order at offset 0: expected 0 or 1, found 120"},
		{"trailing-byte", flowControlBytes + "\x00", "end at offset 128: expected nothing more, found 1 bytes"},
		{"trailing-descriptor", flowControlBytes + flowControlBytes, "end at offset 128: expected nothing more, found 128 bytes"},
		{"wrong-order", "\x00" + flowControlBytes[1:], "endpoint at offset 80: expected a string length from 1 to 256, found 469762048"},
		{"length-0", header + "\x00\x00\x00\x00" + "xxxx" + tail, "endpoint at offset 80: expected a string length from 1 to 256, found 0"},
		{"length-257", header + "\x01\x01\x00\x00" + long + "a\x00" + "xxx" + tail, "endpoint at offset 80: expected a string length from 1 to 256, found 257"},
		{"length-huge", header + "\xff\xff\xff\xff" + "a\x00" + "xx" + tail, "endpoint at offset 80: expected a string length from 1 to 256, found 4294967295"},
		{"length-negative", header + "\x00\x00\x00\x80" + "a\x00" + "xx" + tail, "endpoint at offset 80: expected a string length from 1 to 256, found 2147483648"},
		{"past-the-end", header + "\x1d\x00\x00\x00" + "a\x00" + "xx" + tail, "endpoint at offset 84: expected 29 bytes, found 20"},
		{"into-the-cookie", header + "\x0c\x00\x00\x00" + "a\x00" + "xx" + tail, "endpoint at offset 85: expected no NUL before the end of the string at offset 95"},
		{"no-nul", header + "\x04\x00\x00\x00" + "abcd" + tail, "endpoint at offset 87: expected the NUL that ends the string, found 0x64"},
		{"inner-nul", header + "\x04\x00\x00\x00" + "a\x00c\x00" + tail, "endpoint at offset 85: expected no NUL before the end of the string at offset 87"},
		{"only-nuls", header + "\x04\x00\x00\x00" + "\x00\x00\x00\x00" + tail, "endpoint at offset 84: expected no NUL before the end of the string at offset 87"},
	} {
		t.Run(c.name, func(t *testing.T) { checkParseFails(t, []byte(c.bytes), c.part) })
	}
}

func TestParseDescriptorEndpoints(t *testing.T) {
	for length := range 256 {
		want := flowControl
		want.Endpoint = strings.Repeat("e", length)
		b, err := want.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseDescriptor(b)
		if err != nil || got != want {
			t.Errorf("endpoint of %d bytes: got %+v, %v", length, got, err)
		}
		if len(b)%8 != 0 {
			t.Errorf("endpoint of %d bytes: %d bytes", length, len(b))
		}
	}
}

func TestParseDescriptorTakesAnyFiller(t *testing.T) {
	b := []byte(softwareConsumerBytes)
	for _, at := range []int{1, 2, 3, 166, 167} {
		if b[at] != 'x' {
			t.Fatalf("no filler at %d", at)
		}
		b[at] = byte(at)
	}
	if d, err := ParseDescriptor(b); err != nil || d != softwareConsumer {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestAppendBinaryRefuses(t *testing.T) {
	for _, endpoint := range []string{strings.Repeat("e", 256), "a\x00b", "\x00"} {
		d := flowControl
		d.Endpoint = endpoint
		b, err := d.AppendBinary([]byte("before"))
		if !errors.Is(err, ErrDescriptor) || !strings.Contains(err.Error(), "endpoint") || string(b) != "before" {
			t.Errorf("%.20q: got %q, %v", endpoint, b, err)
		}
	}
}

func TestDescriptorRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 5))
	for range 10000 {
		want := randomDescriptor(random)
		checkBinaryRoundTrip(t, want)
		checkJSONRoundTrip(t, want)
	}
}

func randomDescriptor(random *rand.Rand) Descriptor {
	var d Descriptor
	for _, f := range d.fields() {
		switch v := f.value.(type) {
		case *Kind:
			*v = Kind(1 + random.IntN(3))
		case *Role:
			*v = []Role{RoleActiveMessage, RoleActiveFlowControl, RoleActiveOnly, RolePassive, RoleNone}[random.IntN(5)]
		case *uint32:
			*v = random.Uint32() >> random.IntN(32)
		case *uint64:
			*v = random.Uint64() >> random.IntN(64)
		case *string:
			var s strings.Builder
			for range random.IntN(64) {
				s.WriteRune(rune(1 + random.IntN(0x3000)))
			}
			*v = s.String()
		}
	}
	return d
}

func checkBinaryRoundTrip(t *testing.T, want Descriptor) (size int) {
	t.Helper()
	b, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseDescriptor(b)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	return len(b)
}

// FuzzParseDescriptor checks that ParseDescriptor never panics, and that what
// it accepts comes back the same from its own encoding and from JSON.
func FuzzParseDescriptor(f *testing.F) {
	for _, g := range goldenDescriptors {
		f.Add([]byte(g.bytes))
		f.Add([]byte(g.bytes[:len(g.bytes)-1]))
		f.Add([]byte(g.bytes + "x"))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDescriptor(b[:len(b):len(b)])
		if err != nil {
			if !errors.Is(err, ErrDescriptor) || d != (Descriptor{}) || len(err.Error()) > 1000 {
				t.Fatalf("got %+v, %v", d, err)
			}
			return
		}
		if size := checkBinaryRoundTrip(t, d); size != len(b) {
			t.Fatalf("read %d bytes, wrote %d", len(b), size)
		}
		invalid := d.Validate()
		if invalid != nil && !errors.Is(invalid, ErrDescriptor) {
			t.Fatal(invalid)
		}
		if _, err := d.MarshalJSON(); err == nil {
			checkJSONRoundTrip(t, d)
		} else if !errors.Is(err, ErrDescriptor) {
			t.Fatal(err)
		}
	})
}
