package interop_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/interop"
)

// question is a query together with what the model says to it.
type question struct {
	name string
	q    interop.Query
	// column is the indexed column that it asks through; empty for none.
	column string
	// want are the ids that must come back, in any order unless ordered.
	want    []int64
	ordered bool
	// distances of want, for a vector search.
	distances []float64
	// recall is the share of want that must be there; 0 means all and nothing
	// else. Approximate indexes may miss, but never return a wrong row.
	recall float64
}

// questions are asked of every engine after every step.
func questions(m *model, columns []string) []question {
	any := func(row) bool { return true }
	all := m.ids(any)
	qs := []question{{name: "scan", want: all}}
	filter := func(column, sql string, match func(row) bool) {
		qs = append(qs, question{name: sql, q: interop.Query{Where: sql}, column: column, want: m.ids(match)})
	}
	dead := sample(m.deadIDs(), 20)
	if len(dead) > 0 {
		filter("", fmt.Sprintf("id IN (%s)", joinIDs(dead)), func(r row) bool { return slices.Contains(dead, r.id) })
	}
	for _, c := range columns {
		switch c {
		case "id":
			filter(c, "id >= 350 AND id < 480", func(r row) bool { return r.id >= 350 && r.id < 480 })
			for _, id := range []int64{all[len(all)/2], m.anyDead(any).id} {
				filter(c, fmt.Sprintf("id = %d", id), func(r row) bool { return r.id == id })
			}
		case "n":
			filter(c, "n >= 1000 AND n < 1400", func(r row) bool { return r.n != nil && *r.n >= 1000 && *r.n < 1400 })
			filter(c, "n IS NULL", func(r row) bool { return r.n == nil })
			// One value of a live row and one that only a deleted row had.
			for _, r := range []row{m.rows[all[len(all)/2]], m.anyDead(func(r row) bool { return r.n != nil })} {
				if r.n != nil {
					filter(c, fmt.Sprintf("n = %d", *r.n), func(x row) bool { return x.n != nil && *x.n == *r.n })
				}
			}
		case "cat":
			filter(c, "cat = 'c3'", func(r row) bool { return r.cat != nil && *r.cat == "c3" })
			filter(c, "cat IN ('c1', 'upd')", func(r row) bool { return r.cat != nil && (*r.cat == "c1" || *r.cat == "upd") })
			filter(c, "cat IS NULL", func(r row) bool { return r.cat == nil })
		case "sub":
			filter(c, "contains(sub, 'sub77')", func(r row) bool { return strings.Contains(r.sub, "sub77") })
			filter(c, fmt.Sprintf("contains(sub, 'sub%d')", all[len(all)/3]), func(r row) bool {
				return strings.Contains(r.sub, fmt.Sprintf("sub%d", all[len(all)/3]))
			})
		case "tags":
			filter(c, "array_has_any(tags, ['t2'])", func(r row) bool { return slices.Contains(r.tags, "t2") })
			filter(c, "array_has_all(tags, ['t1', 'u0'])", func(r row) bool {
				return slices.Contains(r.tags, "t1") && slices.Contains(r.tags, "u0")
			})
		case "txt":
			tokens := []string{"alpha", fmt.Sprintf("w%d", all[len(all)/2])}
			if r := m.anyDead(any); r.sub != "" {
				tokens = append(tokens, fmt.Sprintf("w%d", r.id))
			}
			for _, word := range tokens {
				qs = append(qs, question{
					name: "search " + word, column: c,
					q:    interop.Query{FTS: &interop.TextSearch{Column: c, Text: word}, Limit: len(all) + 1},
					want: m.ids(func(r row) bool { return slices.Contains(strings.Fields(r.txt), word) }),
				})
			}
		}
	}
	return qs
}

// vectorQuestions ask for the nearest neighbours of live and of deleted rows.
// Every candidate is re-ranked by its stored vector, so an answer is exact unless
// the index searches a graph.
func vectorQuestions(m *model, kind interop.IndexKind) []question {
	const k = 10
	all := m.ids(func(row) bool { return true })
	around := []row{m.rows[all[3]], m.rows[all[len(all)/2]], m.rows[all[len(all)-1]]}
	if r := m.anyDead(func(row) bool { return true }); r.vec != nil {
		around = append(around, r)
	}
	var qs []question
	for _, r := range around {
		q := question{
			name: fmt.Sprintf("nearest to %d", r.id), column: "vec", ordered: true,
			q: interop.Query{KNN: &interop.VectorSearch{Column: "vec", Vector: r.vec, Probes: 64}, Limit: k},
		}
		q.want, q.distances = m.nearest(r.vec, k)
		switch {
		case strings.Contains(string(kind), "HNSW"):
			// The engines want a candidate list no shorter than what is re-ranked.
			q.recall, q.q.KNN.EF, q.q.KNN.Refine = 0.8, len(all), 10
		case kind != interop.IVFFlat:
			q.q.KNN.Refine = len(all)/k + 1
		}
		qs = append(qs, q)
	}
	return qs
}

// ask puts one question and returns what is wrong with the answer, "" if nothing,
// and whether the plan names an index.
func ask(ctx context.Context, e *interop.Engine, path string, m *model, q question) (problem string, usedIndex bool) {
	columns := columnNames(m.schema)
	query := q.q
	query.Columns = columns
	if query.KNN != nil {
		query.Columns = append(slices.Clone(columns), "_distance")
	}
	if query.FTS != nil {
		query.Columns = append(slices.Clone(columns), "_score")
	}
	a, err := e.Query(ctx, path, query)
	if err != nil {
		return "fails: " + err.Error(), false
	}
	defer a.Release()
	got, err := rowsOf(a.Batches, columns)
	if err != nil {
		return err.Error(), false
	}
	return compare(m, q, got), planUsesIndex(a.Plan)
}

func planUsesIndex(plan string) bool {
	for _, operator := range []string{"ScalarIndexQuery", "MaterializeIndex", "ANNSubIndex", "ANNIvf", "MatchQuery"} {
		if strings.Contains(plan, operator) {
			return true
		}
	}
	return false
}

// compare says what is wrong with an answer: rows of wrong content first, since
// they are worse than missing ones.
func compare(m *model, q question, got []answerRow) string {
	seen := map[int64]bool{}
	for _, r := range got {
		want, live := m.canon[r.id]
		switch {
		case seen[r.id]:
			return fmt.Sprintf("row %d comes twice", r.id)
		case !live:
			return fmt.Sprintf("row %d is deleted or was never there: %s", r.id, r.json)
		case r.json != want:
			return fmt.Sprintf("row %d is\n  %s, want\n  %s", r.id, r.json, want)
		}
		seen[r.id] = true
	}
	if q.recall > 0 {
		return compareApproximate(m, q, got)
	}
	ids := make([]int64, len(got))
	for i, r := range got {
		ids[i] = r.id
	}
	if !q.ordered {
		slices.Sort(ids)
	}
	if !slices.Equal(ids, q.want) {
		return fmt.Sprintf("%d rows, want %d; missing %v, too many %v", len(ids), len(q.want),
			sample(without(q.want, ids), 5), sample(without(ids, q.want), 5))
	}
	for i, d := range q.distances {
		if math.Abs(got[i].distance-d) > 1e-3 {
			return fmt.Sprintf("row %d at distance %v, want %v", ids[i], got[i].distance, d)
		}
	}
	return ""
}

func compareApproximate(m *model, q question, got []answerRow) string {
	if len(got) != len(q.want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(q.want))
	}
	hits := 0
	for _, r := range got {
		if slices.Contains(q.want, r.id) {
			hits++
		}
		if d := squaredL2(q.q.KNN.Vector, m.rows[r.id].vec); math.Abs(r.distance-d) > 1e-3 {
			return fmt.Sprintf("row %d at distance %v, want %v", r.id, r.distance, d)
		}
	}
	if float64(hits) < q.recall*float64(len(q.want)) {
		return fmt.Sprintf("%d of the %d nearest rows found", hits, len(q.want))
	}
	return ""
}

func (m *model) deadIDs() []int64 {
	ids := make([]int64, 0, len(m.dead))
	for id := range m.dead {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// anyDead returns a deleted row, always the same one, or the zero row.
func (m *model) anyDead(match func(row) bool) row {
	ids := m.deadIDs()
	for i := range ids {
		if r := m.dead[ids[(i+len(ids)/2)%len(ids)]]; match(r) {
			return r
		}
	}
	return row{}
}

// sample returns up to n of the ids, spread over them.
func sample(ids []int64, n int) []int64 {
	if len(ids) <= n {
		return ids
	}
	out := make([]int64, 0, n)
	for i := range n {
		out = append(out, ids[i*len(ids)/n])
	}
	return out
}

func without(a, b []int64) []int64 {
	in := make(map[int64]bool, len(b))
	for _, id := range b {
		in[id] = true
	}
	var out []int64
	for _, id := range a {
		if !in[id] {
			out = append(out, id)
		}
	}
	return out
}

func joinIDs(ids []int64) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = fmt.Sprint(id)
	}
	return strings.Join(parts, ", ")
}
