package opencpi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const softwareConsumerJSON = `{
	"kind": "consumer",
	"role": "active_flow_control",
	"options": 66,
	"buffers": 4,
	"data_addr": 16512,
	"pitch": 2048,
	"size": 2048,
	"meta_addr": 28672,
	"meta_pitch": 16,
	"full_flag_addr": 16,
	"full_flag_size": 4,
	"full_flag_pitch": 80,
	"full_flag_value": 3,
	"empty_flag_addr": 352,
	"empty_flag_size": 5,
	"empty_flag_pitch": 8,
	"empty_flag_value": 7,
	"port_id": 81985529216486895,
	"endpoint": "ocpi-udp-rdma:192.168.1.5:40123;6f9619ff-8b86-d011-b42d-00c04fc964ff.3145728.1.10",
	"cookie": 1234605616436508552,
	"address": 72623859790382856
}`

func TestDescriptorJSON(t *testing.T) {
	got, err := json.MarshalIndent(softwareConsumer, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != softwareConsumerJSON {
		t.Errorf("got  %s\nwant %s", got, softwareConsumerJSON)
	}
	var d Descriptor
	if err := json.Unmarshal([]byte(softwareConsumerJSON), &d); err != nil {
		t.Fatal(err)
	}
	if d != softwareConsumer {
		t.Errorf("got  %+v\nwant %+v", d, softwareConsumer)
	}
	for _, g := range goldenDescriptors {
		checkJSONRoundTrip(t, g.descriptor)
	}
}

func checkJSONRoundTrip(t *testing.T, want Descriptor) {
	t.Helper()
	text, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got Descriptor
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got != want {
		t.Fatalf("%s:\ngot  %+v\nwant %+v", text, got, want)
	}
}

func TestDescriptorJSONWords(t *testing.T) {
	for _, c := range []struct {
		kind, role string
		want       Descriptor
	}{
		{"consumer", "active_message", Descriptor{Kind: 1, Role: 0}},
		{"consumer_flow_control", "active_flow_control", Descriptor{Kind: 2, Role: 1}},
		{"producer", "active_only", Descriptor{Kind: 3, Role: 2}},
		{"producer", "passive", Descriptor{Kind: 3, Role: 3}},
		{"producer", "none", Descriptor{Kind: 3, Role: 5}},
	} {
		// Fields that are left out become zero.
		got := softwareConsumer
		if err := json.Unmarshal([]byte(` { "role" : "`+c.role+`" , "kind" : "`+c.kind+`" } `), &got); err != nil {
			t.Error(err)
		}
		if got != c.want {
			t.Errorf("got %+v, want %+v", got, c.want)
		}
		if got.Kind.String() != c.kind || got.Role.String() != c.role {
			t.Errorf("got %v and %v, want %s and %s", got.Kind, got.Role, c.kind, c.role)
		}
	}
	if text := Kind(9).String() + Role(4).String() + Role(1<<31).String(); text != "Kind(9)Role(4)Role(2147483648)" {
		t.Error(text)
	}
}

func TestUnmarshalDescriptorRefuses(t *testing.T) {
	const known = `"kind":"consumer","role":"none"`
	for _, c := range []struct {
		name, text, part string
	}{
		{"null", `null`, "expected a JSON object"},
		{"array", `[]`, "expected a JSON object"},
		{"string", `"consumer"`, "expected a JSON object"},
		{"no-kind", `{"role":"none"}`, `kind is missing, expected one of "consumer", "consumer_flow_control", "producer"`},
		{"no-role", `{"kind":"consumer"}`, `role is missing, expected one of "active_message", "active_flow_control", "active_only", "passive", "none"`},
		{"unknown", `{` + known + `,"banana":1}`, `unknown field "banana", expected one of kind, role, options, `},
		{"wrong-case", `{` + known + `,"Size":1}`, `unknown field "Size"`},
		{"go-name", `{` + known + `,"DataAddr":1}`, `unknown field "DataAddr"`},
		{"twice", `{` + known + `,"size":1,"size":1}`, "size is there twice, expected once"},
		{"kind-number", `{"kind":1,"role":"none"}`, "kind is `1`, expected one of \"consumer\""},
		{"kind-word", `{"kind":"Consumer","role":"none"}`, "kind is `\"Consumer\"`, expected one of \"consumer\""},
		{"kind-empty", `{"kind":"","role":"none"}`, `kind is`},
		{"kind-null", `{"kind":null,"role":"none"}`, "kind is `null`"},
		{"role-word", `{"kind":"consumer","role":"max"}`, "role is `\"max\"`, expected one of \"active_message\""},
		{"role-empty", `{"kind":"consumer","role":""}`, "role is"},
		{"negative", `{` + known + `,"buffers":-1}`, "buffers is `-1`, expected a whole number from 0 to 4294967295"},
		{"fraction", `{` + known + `,"size":1.5}`, "size is `1.5`, expected a whole number"},
		{"exponent", `{` + known + `,"size":1e3}`, "size is `1e3`, expected a whole number"},
		{"too-large", `{` + known + `,"full_flag_addr":4294967296}`, "full_flag_addr is `4294967296`, expected a whole number from 0 to 4294967295"},
		{"too-large-64", `{` + known + `,"cookie":18446744073709551616}`, "cookie is `18446744073709551616`, expected a whole number from 0 to 18446744073709551615"},
		{"number-text", `{` + known + `,"options":"66"}`, "options is `\"66\"`, expected a whole number"},
		{"number-null", `{` + known + `,"pitch":null}`, "pitch is `null`, expected a whole number"},
		{"number-object", `{` + known + `,"pitch":{}}`, "pitch is `{}`, expected a whole number"},
		{"endpoint-number", `{` + known + `,"endpoint":7}`, "endpoint is `7`, expected a string"},
		{"endpoint-null", `{` + known + `,"endpoint":null}`, "endpoint is `null`, expected a string"},
		{"endpoint-bytes", `{` + known + `,"endpoint":"` + "\xff" + `"}`, "expected a string in UTF-8"},
		{"endpoint-nul", `{` + known + `,"endpoint":"a\u0000b"}`, "expected no NUL"},
		{"endpoint-long", `{` + known + `,"endpoint":"` + strings.Repeat("e", 256) + `"}`, "expected at most 255 bytes, not 256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := softwareConsumer
			err := json.Unmarshal([]byte(c.text), &d)
			if !errors.Is(err, ErrDescriptor) || !strings.HasPrefix(err.Error(), "opencpi: ") || !strings.Contains(err.Error(), c.part) {
				t.Errorf("error %v, want one about %s", err, c.part)
			}
			if d != softwareConsumer {
				t.Errorf("changed to %+v", d)
			}
		})
	}
	// Package json finds these before it calls UnmarshalJSON.
	for _, text := range []string{"", "{", `{"kind"`, `{"kind":"consumer",}`, softwareConsumerJSON + "x"} {
		var d Descriptor
		if err := d.UnmarshalJSON([]byte(text)); !errors.Is(err, ErrDescriptor) {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
}

func TestMarshalDescriptorRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Descriptor)
		part   string
	}{
		{"kind", func(d *Descriptor) { d.Kind = 0 }, `kind is "Kind(0)", expected one of "consumer"`},
		{"role", func(d *Descriptor) { d.Role = 4 }, `role is "Role(4)", expected one of "active_message"`},
		{"endpoint-bytes", func(d *Descriptor) { d.Endpoint = "\xff" }, `endpoint is "\xff", expected UTF-8`},
		{"endpoint-nul", func(d *Descriptor) { d.Endpoint = "\x00" }, `expected no NUL`},
		{"endpoint-long", func(d *Descriptor) { d.Endpoint = strings.Repeat("e", 256) }, `expected at most 255 bytes, not 256`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := softwareConsumer
			c.change(&d)
			text, err := json.Marshal(d)
			if !errors.Is(err, ErrDescriptor) || !strings.Contains(err.Error(), c.part) {
				t.Errorf("got %s, error %v, want one about %s", text, err, c.part)
			}
		})
	}
}
