package capture

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// written is a file of records, each interface known only with its first.
func written(records ...Record) []byte {
	var w Writer
	b := w.Begin(nil, nil)
	for i := range records {
		b = w.Append(b, &records[i])
	}
	return b
}

func ngRecords() []Record {
	at := time.Date(2021, 3, 4, 5, 6, 7, 123456789, time.UTC)
	return []Record{
		{Time: at, Interface: 0, Name: "eth0", LinkType: linkEthernet, Data: bytes.Repeat([]byte{1}, 60), Length: 60},
		{Time: at.Add(1), Interface: 1, Name: "tun0", LinkType: linkRaw, Data: bytes.Repeat([]byte{2}, 41), Length: 1500},
		{Time: at.Add(-time.Second), Interface: 0, Name: "eth0", LinkType: linkEthernet, Data: []byte{}, Length: 14},
		{Time: time.Unix(0, 0).UTC(), Interface: 0, Name: "renamed", LinkType: linkEthernet, Data: []byte{3}, Length: 3},
		{Time: at, Interface: 5, LinkType: linkCooked2, Data: []byte{4, 5}, Length: 2},
	}
}

// What is written is read again, by the reader here and by pcapgo's.
func TestWriter(t *testing.T) {
	records := ngRecords()
	b := written(records...)
	file, err := NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	ids := []int{0, 1, 0, 2, 3}
	for i, want := range records {
		want.Interface = ids[i]
		got, err := file.Next()
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	if _, err := file.Next(); err != io.EOF {
		t.Errorf("behind the last one: %v", err)
	}
	if got := fmt.Sprint(file.Interfaces()); got != "[{eth0 1} {tun0 101} {renamed 1} { 276}]" {
		t.Errorf("interfaces %s", got)
	}
	other, err := pcapgo.NewNgReader(bytes.NewReader(b), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range records {
		data, info, err := other.ReadPacketData()
		if err != nil || !bytes.Equal(data, want.Data) || info.Length != want.Length || !info.Timestamp.Equal(want.Time) || info.InterfaceIndex != ids[i] {
			t.Errorf("pcapgo: %v, %+v, %v; want %v", data, info, err, want)
		}
	}
}

// Times that the format does not have become the nearest that it has.
func TestWriterClampsTimes(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(-1, 0)} {
		file, err := NewFile(bytes.NewReader(written(Record{Time: at, LinkType: linkRaw, Data: []byte{1}, Length: 1})))
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := file.Next(); err != nil || !rec.Time.Equal(time.Unix(0, 0)) {
			t.Errorf("%v became %v, %v", at, rec.Time, err)
		}
	}
}

// Interfaces that are known at the beginning are in the file before any packet, and are
// not described again.
func TestWriterBegins(t *testing.T) {
	var w Writer
	b := w.Begin(nil, []Interface{{"lo", linkEthernet}, {"eth0", linkEthernet}})
	head := len(b)
	for range 2 {
		b = w.Append(b, &Record{Interface: 1, Name: "eth0", LinkType: linkEthernet, Data: []byte{1}, Length: 1})
	}
	if n := (len(b) - head) / 2; n != 36 {
		t.Errorf("%d bytes for a record of one, want 36", n)
	}
	file, err := NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := file.Next(); err != nil || rec.Interface != 1 || fmt.Sprint(file.Interfaces()) != "[{lo 1} {eth0 1}]" {
		t.Errorf("%+v, %v, %v", rec, err, file.Interfaces())
	}
}

// However many interfaces there are, what is known of them is bounded, and the file is
// readable.
func TestWriterOfManyInterfaces(t *testing.T) {
	const n = maxInterfaces + 10
	var w Writer
	b := w.Begin(nil, nil)
	for i := range n {
		b = w.Append(b, &Record{Interface: i, LinkType: linkRaw, Data: []byte{1}, Length: 1})
	}
	if len(w.ids) > maxInterfaces {
		t.Errorf("%d interfaces are known", len(w.ids))
	}
	if got, err := countRecords(b); got != n || err != io.EOF {
		t.Errorf("%d records, %v", got, err)
	}
}

func countRecords(b []byte) (n int, err error) {
	file, err := NewFile(bytes.NewReader(b))
	for err == nil {
		if _, err = file.Next(); err == nil {
			n++
		}
	}
	return n, err
}

func TestWriterAllocatesNothing(t *testing.T) {
	var w Writer
	rec := ngRecords()[0]
	b := w.Append(w.Begin(nil, nil), &rec)
	if n := fixture.Allocations(100, func() { b = w.Append(b[:0], &rec) }); n != 0 {
		t.Errorf("%v allocations for each record", n)
	}
}

// TestTsharkReadsIt: names, link types and nanoseconds are where others look for them.
func TestTsharkReadsIt(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("tshark is missing: apt-get install --no-install-recommends tshark")
	}
	path := filepath.Join(t.TempDir(), "f.pcapng")
	if err := os.WriteFile(path, written(ngRecords()...), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.encap_type", "-e", "frame.time_epoch", "-e", "frame.len").Output()
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(got) != 5 || got[0] != "eth0\t1\t1614834367.123456789\t60" || got[1] != "tun0\t7\t1614834367.123456790\t1500" || !strings.HasPrefix(got[3], "renamed\t1\t0.000000000") {
		t.Errorf("%v, %q", err, got)
	}
}

// FuzzWriter: what was read from any file, damaged or not, is the same after it was written.
func FuzzWriter(f *testing.F) {
	f.Add(written(ngRecords()...))
	f.Add(written()[:28])
	f.Fuzz(func(t *testing.T, b []byte) {
		src, err := NewFile(bytes.NewReader(b))
		if err != nil {
			return
		}
		var w Writer
		out := w.Begin(nil, nil)
		var all []string
		for len(all) < 1000 {
			rec, err := src.Next()
			if err != nil {
				break
			}
			out = w.Append(out, &rec)
			all = append(all, fmt.Sprintf("%q %d %x %d", rec.Name, rec.LinkType, rec.Data, rec.Length))
		}
		again, err := NewFile(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range all {
			rec, err := again.Next()
			if got := fmt.Sprintf("%q %d %x %d", rec.Name, rec.LinkType, rec.Data, rec.Length); err != nil || got != want {
				t.Fatalf("record %d: %s, %v; want %s", i+1, got, err, want)
			}
		}
		if _, err := again.Next(); err != io.EOF {
			t.Fatalf("behind the last one: %v", err)
		}
	})
}
