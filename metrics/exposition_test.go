package metrics

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// exposition is a text in Prometheus' format, read strictly.
type exposition struct {
	kinds   map[string]string  // of metrics
	samples map[string]float64 // by "name{a="x",b="y"}" with labels in order of their names
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// parseExposition refuses everything that Prometheus would, and what it would only
// frown upon: metrics in pieces or without help, and counters not called total.
func parseExposition(text string) (*exposition, error) {
	x := &exposition{kinds: make(map[string]string), samples: make(map[string]float64)}
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line is not ended")
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("not UTF-8")
	}
	helped, current := "", ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		bad := func(format string, args ...any) (*exposition, error) {
			return nil, fmt.Errorf("line %d, %q: %s", n+1, line, fmt.Sprintf(format, args...))
		}
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			if _, twice := x.kinds[name]; !metricName.MatchString(name) || help == "" || twice {
				return bad("a bad name, no help, or a metric in two pieces")
			}
			helped = name
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if name != helped || kind != "counter" && kind != "gauge" {
				return bad("not after its help, or an unknown kind")
			}
			if (kind == "counter") != strings.HasSuffix(name, "_total") {
				return bad("counters, and no others, are called total")
			}
			current, x.kinds[name] = name, kind
			continue
		}
		name, labels, value, err := parseSample(line)
		if err != nil {
			return bad("%v", err)
		}
		if name != current {
			return bad("not under its own help and type")
		}
		key := sampleKey(name, labels)
		if _, twice := x.samples[key]; twice {
			return bad("twice")
		}
		if x.samples[key] = value; x.kinds[name] == "counter" && value < 0 {
			return bad("a counter below 0")
		}
	}
	return x, nil
}

func parseSample(line string) (name string, labels map[string]string, value float64, err error) {
	name, rest, ok := strings.Cut(line, "{")
	if !ok || !metricName.MatchString(name) {
		return "", nil, 0, fmt.Errorf("no name and labels")
	}
	labels = make(map[string]string)
	for {
		label, after, ok := strings.Cut(rest, `="`)
		if _, twice := labels[label]; !ok || !labelName.MatchString(label) || twice {
			return "", nil, 0, fmt.Errorf("a bad label %q", label)
		}
		value := ""
		for rest = after; ; {
			i := strings.IndexAny(rest, "\\\"")
			if i < 0 || rest[i] == '\\' && i+1 == len(rest) {
				return "", nil, 0, fmt.Errorf("label %s does not end", label)
			}
			value += rest[:i]
			if rest[i] == '"' {
				rest = rest[i+1:]
				break
			}
			plain, known := map[byte]string{'\\': `\`, '"': `"`, 'n': "\n"}[rest[i+1]]
			if !known {
				return "", nil, 0, fmt.Errorf("label %s escapes %q", label, rest[i+1])
			}
			value += plain
			rest = rest[i+2:]
		}
		labels[label] = value
		if after, more := strings.CutPrefix(rest, ","); more {
			rest = after
			continue
		}
		break
	}
	number, ok := strings.CutPrefix(rest, "} ")
	if !ok {
		return "", nil, 0, fmt.Errorf("labels do not end")
	}
	value, err = strconv.ParseFloat(number, 64)
	return name, labels, value, err
}

func sampleKey(name string, labels map[string]string) string {
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", l, labels[l]))
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}

// scrape reads what a registry writes.
func scrape(t testing.TB, r *Registry) *exposition {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	x, err := parseExposition(b.String())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// want checks one sample; labels are pairs of name and value.
func (x *exposition) want(t testing.TB, value float64, name string, labels ...string) {
	t.Helper()
	m := make(map[string]string)
	for i := 0; i < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	key := sampleKey(name, m)
	if got, there := x.samples[key]; !there || got != value {
		t.Errorf("%s is %v (there: %v), want %v", key, got, there, value)
	}
}

// TestParserIsStrict: the tests below are worth what this parser refuses.
func TestParserIsStrict(t *testing.T) {
	const head = "# HELP a_total What.\n# TYPE a_total counter\n"
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{head + "a_total{x=\"1\",y=\"\\\\\\\"\\n\"} 1\n", true},
		{head + "a_total{x=\"1\"} 1", false},
		{"a_total{x=\"1\"} 1\n", false},
		{"# TYPE a_total counter\na_total{x=\"1\"} 1\n", false},
		{"# HELP a_total\n# TYPE a_total counter\n", false},
		{"# HELP a What.\n# TYPE a counter\n", false},
		{"# HELP a_total What.\n# TYPE a_total gauge\n", false},
		{"# HELP a What.\n# TYPE a histogram\n", false},
		{head + "b_total{x=\"1\"} 1\n", false},
		{head + "a_total{x=\"1\"} 1\na_total{x=\"1\"} 2\n", false},
		{head + "a_total{x=\"1\",x=\"2\"} 1\n", false},
		{head + "a_total{x=\"\\t\"} 1\n", false},
		{head + "a_total{x=\"a\"b\"} 1\n", false},
		{head + "a_total{x=\"1} 1\n", false},
		{head + "a_total{x=\"1\\\n", false},
		{head + "a_total{1x=\"1\"} 1\n", false},
		{head + "a_total{x=\"1\"}1\n", false},
		{head + "a_total{x=\"1\"} one\n", false},
		{head + "a_total{x=\"1\"} -1\n", false},
		{head + "a_total{x=\"\xff\"} 1\n", false},
		{head + "a_total{x=\"1\"} 1\n" + head, false},
	} {
		if _, err := parseExposition(c.text); (err == nil) != c.ok {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}
