package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/page"
)

// chromium runs a headless browser with a profile of its own.
func chromium(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no chromium in PATH; install it: apt-get install chromium")
		}
		t.Skip("no chromium in PATH: how pages look is not tested; apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--user-data-dir=" + t.TempDir(),
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &err
	cmd.WaitDelay = 5 * time.Second
	if e := cmd.Run(); e != nil {
		t.Fatalf("%v\n%s", e, err.String())
	}
	return out.String(), err.String()
}

// judge gives each page each width and both colour schemes, in a frame of its own, and measures it. A frame has the colour scheme
// of the element that embeds it.
const judge = `<!DOCTYPE html><meta charset="utf-8"><pre id="result"></pre>%s<script>
const widths = %s
const meet = (a, b) => a.left < b.right - .5 && b.left < a.right - .5 && a.top < b.bottom - 1.5 && b.top < a.bottom - 1.5
const inside = (a, b) => a.left >= b.left - .5 && a.right <= b.right + .5

// textsOf returns the nodes of a document that are text, each with what must hold it.
function textsOf(d) {
  const walker = d.createTreeWalker(d.body, NodeFilter.SHOW_TEXT, n => n.data.trim() && !n.parentElement.closest("title") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP)
  const texts = []
  for (let n; n = walker.nextNode();) {
    const range = d.createRange()
    range.selectNodeContents(n)
    const e = n.parentElement
    texts.push({n, range, holders: [e.closest("td, th, .badge, .row, dd, dt"), e.closest("figure, table, .findings, main, header, footer")].filter(x => x)})
  }
  return texts
}

// faults returns what is wrong with a document as it is laid out.
function faults(d, texts, elements) {
  const bad = [], root = d.documentElement, wide = root.clientWidth, boxes = [], places = new Map()
  const place = e => { if (!places.has(e)) places.set(e, e.getBoundingClientRect()); return places.get(e) }
  if (root.scrollWidth > wide) bad.push("needs to be scrolled to " + root.scrollWidth)
  for (const t of texts) {
    for (const r of t.range.getClientRects()) {
      if (r.width < .5 || r.height < .5) continue
      if (r.left < -.5 || r.right > wide + .5) bad.push("text outside the window: " + t.n.data)
      for (const h of t.holders) if (!inside(r, place(h))) bad.push("text outside its " + h.tagName + " " + h.className + ": " + t.n.data)
      boxes.push({left: r.left, right: r.right, top: r.top, bottom: r.bottom, n: t.n})
    }
  }
  boxes.sort((a, b) => a.top - b.top)
  for (let i = 0; i < boxes.length; i++)
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom; j++)
      if (boxes[i].n != boxes[j].n && meet(boxes[i], boxes[j])) bad.push("overlap: " + boxes[i].n.data + " | " + boxes[j].n.data)
  for (const {e, f, clips} of elements) {
    const r = place(e)
    if (r.width > 0 && (r.right > wide + .5 || r.left < -.5)) bad.push("outside the window: " + e.tagName + " " + e.className)
    if (f && r.width > 0 && !inside(r, place(f))) bad.push("outside its figure: " + e.tagName + " " + e.className)
    if (clips && e.scrollWidth > e.clientWidth) bad.push("clipped: " + e.tagName + " " + e.className)
  }
  return bad
}

addEventListener("load", () => {
  const result = []
  for (const frame of document.querySelectorAll("iframe")) {
    const d = frame.contentDocument, texts = textsOf(d), elements = [...d.querySelectorAll("body *")].filter(e => !e.parentElement.closest("svg, .field"))
      .map(e => ({e, f: e.closest("figure"), clips: d.defaultView.getComputedStyle(e).overflowX != "visible"}))
    for (const width of widths) {
      frame.style.width = width + "px"
      for (const scheme of ["light", "dark"]) {
        frame.style.colorScheme = scheme
        const style = d.defaultView.getComputedStyle(d.body), bad = faults(d, texts, elements)
        result.push({width, scheme, n: bad.length, bad: bad.slice(0, 5), background: style.backgroundColor, texts: texts.length, paths: d.querySelectorAll("path").length,
          heading: parseFloat(d.defaultView.getComputedStyle(d.querySelector("h1")).fontSize)})
      }
    }
    frame.style.display = "none"
  }
  document.getElementById("result").textContent = JSON.stringify(result)
})
</script>`

// verdict is what was measured of a page in one width and colour scheme.
type verdict struct {
	Width, N, Texts, Paths int
	Heading                float64
	Bad                    []string
	Scheme, Background     string
}

// widths are every 40 pixels those from a small telephone's to a wide window's, and those around each width at which the style changes.
func widths(t *testing.T, one []byte) (all []int) {
	for w := 320; w <= 1600; w += 40 {
		all = append(all, w)
	}
	changes := regexp.MustCompile(`@media \(max-width:(\d+)px\)`).FindAllSubmatch(one, -1)
	if len(changes) == 0 {
		t.Fatal("the style is the same at every width")
	}
	for _, m := range changes {
		w, _ := strconv.Atoi(string(m[1]))
		all = append(all, w, w+1)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// odd is a report with more of everything than a page is made for: long names, addresses of IPv6 with zones, big numbers, and a finding of each length.
func odd() *inspect.Report {
	r := crowded()
	r.Flows = r.Flows[:2]
	const v6 = "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535"
	for i := range r.Flows {
		f := &r.Flows[i]
		f.From, f.To = inspect.End{Address: v6, ID: frame.EndpointID(65530 - i)}, inspect.End{Address: "[fe80::1234:5678:9abc:def0%enp0s31f6np1]:65535", ID: 65535}
		f.Frames, f.Data, f.Resent, f.Duplicates, f.Missing, f.InFlightMost = 1_234_567_890, 999_900_000_000, 123_456_789, 12_345_678, 1_234_567, 65_535
		f.Transactions.Begun, f.Transactions.Completed = 1_234_567_890, 1_234_567_889
	}
	for i := range 12 {
		r.Findings = append(r.Findings, inspect.Finding{
			Severity: []inspect.Severity{inspect.Problem, inspect.Warning, inspect.Note}[i%3], Kind: "x", Flow: i % 3, Records: []int{1_234_567_890, 1_234_567_891, 1_234_567_892},
			Text: strings.Repeat("A connection from "+v6+" ended. ", i) + strings.Repeat("0123456789abcdef", i) + ".",
		})
	}
	for i := range 3 {
		side := inspect.Side{Address: v6, Frames: 1_234_567_890, Bytes: 123_456_789_012, Resent: 12_345_678, Missing: 2_147_483_648, Operations: []inspect.Operation{
			{Name: "Send with SE and Invalidate", Messages: 1_234_567_890, Bytes: 1_234_567_890_123, RoundTrip: &inspect.Histogram{Count: 123_456_789, P50: time.Hour, P90: 100 * time.Hour, P99: 1000 * time.Hour, Max: 1000 * time.Hour}},
			{Name: "Read Response", Messages: 1},
		}}
		r.Connections = append(r.Connections, inspect.Connection{
			Number: 1000 + i, From: v6, To: v6, Known: i > 0, FirstRecord: 1_234_567_890, LastRecord: 1_234_567_890, Last: 1000 * time.Hour,
			State: "not captured", Revision: i, PeerToPeer: true, CRC: "unknown", Reads: [2]int{16383, 16383}, Sides: [2]inspect.Side{side, side},
			RPC: &inspect.RPC{Client: v6, Version: 2, InUse: 12_345_678, Granted: 12_345_678, ReverseInUse: 12_345_678, ReverseGranted: 12_345_678, Placed: 123_456_789_012, Fetched: 123_456_789_012, Procedures: []inspect.RPCProcedure{
				{Name: "program 4294967295 version 4294967295 procedure 4294967295", Reverse: true, Calls: 1_234_567_890, Replies: 1_234_567_890, Failed: 1_234_567_890, Errors: 1_234_567_890, Placed: 123_456_789_012, Fetched: 123_456_789_012, Min: time.Hour, Median: 100 * time.Hour, Max: 1000 * time.Hour, MaxXID: "0xfedcba98", MaxRecord: 1_234_567_890},
			}, Slowest: []inspect.SlowCall{
				{XID: "0xfedcba98", Procedure: "program 0xffffffff version 4294967295 procedure 4294967295", Reverse: true, Record: 1_234_567_890, Reply: 1_234_567_890, Took: 1000 * time.Hour, Reads: 100 * time.Hour, Writes: 100 * time.Hour, Server: 800 * time.Hour},
			}},
		})
		end := inspect.End{Address: v6, ID: 65535}
		r.Sealed = append(r.Sealed, inspect.Sealed{
			Number: i, From: end, To: end, Last: 1000 * time.Hour, Frames: 1_234_567_890, Inside: 999_900_000_000, Keys: 12_345, Missing: 12_345_678, Late: 12_345_678, Copies: 12_345_678,
			Ended: 12_345, Unended: 12_345_678, Unsealed: 12_345_678,
		})
	}
	r.Capture.Records, r.Capture.Frames, r.Capture.Duration = 1_234_567_890, 1_234_567_890, 1000*time.Hour
	return r
}

// look measures pages in all widths and both colour schemes. One browser, which takes long to start, has all of them.
func look(t *testing.T, pages [][]byte, widths []int) (verdicts []verdict) {
	t.Helper()
	frames := ""
	for _, page := range pages {
		frames += fmt.Sprintf(`<iframe style="border:0;height:900px" srcdoc="%s"></iframe>`, html.EscapeString(string(page)))
	}
	list, err := json.Marshal(widths)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "judge.html")
	if err := os.WriteFile(file, fmt.Appendf(nil, judge, frames, list), 0o600); err != nil {
		t.Fatal(err)
	}
	out, log := chromium(t, "--window-size=1700,1000", "--dump-dom", "file://"+file)
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser complains: %s", line)
		}
	}
	m := regexp.MustCompile(`(?s)<pre id="result">(.*?)</pre>`).FindStringSubmatch(out)
	if m == nil || json.Unmarshal([]byte(html.UnescapeString(m[1])), &verdicts) != nil || len(verdicts) != len(pages)*len(widths)*2 {
		t.Fatalf("no result in %.500s\n%s", out, log)
	}
	return verdicts
}

// TestPagesInABrowser shows pages in a real browser, every 40 pixels from 320 to 1600, light and dark, and checks that none needs to be scrolled sideways, that no two pieces of text
// overlap, and that none leaves the box that it is in (N6, N7).
func TestPagesInABrowser(t *testing.T) {
	all := reports(t)
	streamed := inspect.New()
	streams(t, streamed)
	all["iWARP"], all["odd"] = streamed.Report(), odd()
	all["crowded"].Flows = all["crowded"].Flows[:16] // the others look alike
	names := []string{"empty", "crowded", "odd", "iWARP", "udp-loss7", "ether2-single", "fpga-lost-ack-stalls"}
	var pages [][]byte
	for _, name := range names {
		title := name
		if name == "odd" {
			title = strings.Repeat("a_long_name_without_a_space-", 10)
		}
		var b bytes.Buffer
		if err := page.Write(&b, all[name], page.Options{Title: title}); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, b.Bytes())
	}
	at := widths(t, pages[0])
	verdicts := look(t, pages, at)
	for n, name := range names {
		t.Run(name, func(t *testing.T) {
			for _, v := range verdicts[n*len(at)*2:][:len(at)*2] {
				for _, bad := range v.Bad {
					t.Errorf("%s, %d pixels, one of %d: %s", v.Scheme, v.Width, v.N, bad)
				}
				if v.Texts < 15 || len(all[name].Flows) > 0 && v.Paths == 0 {
					t.Errorf("%d pieces of text and %d paths", v.Texts, v.Paths)
				}
				if want := map[string]string{"light": "rgb(251, 250, 248)", "dark": "rgb(20, 23, 26)"}[v.Scheme]; v.Background != want {
					t.Errorf("%s: the background is %s, want %s", v.Scheme, v.Background, want)
				}
				if v.Heading < 20 || v.Heading > 32 {
					t.Errorf("heading of %v pixels at %d: styles do not apply", v.Heading, v.Width)
				}
			}
		})
	}
}
