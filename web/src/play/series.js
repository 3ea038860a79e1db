// Samples for the plots, a bounded number: when there is no more space, two neighbours become one.

const capacity = 1024;
const merge = { max: (a, b) => Math.max(a, b), mean: (a, b) => (a + b) / 2, last: (a, b) => b };

export class Series {
  // how says for each column how two values become one: max, mean, or last (of a value that only grows).
  constructor(how, every) {
    this.how = how;
    this.every = every; // ns between two samples of the simulation
    this.stride = 1; // samples of the simulation in one of these
    this.times = [];
    this.columns = how.map(() => []);
    this.pending = null; // values of an incomplete sample
    this.count = 0;
    this.seen = 0; // samples of the simulation
  }

  push(values) {
    this.seen++;
    this.pending = this.pending ? this.pending.map((v, i) => merge[this.how[i]](v, values[i])) : values;
    if (++this.count < this.stride) return;
    this.times.push(this.seen * this.every);
    this.pending.forEach((v, i) => this.columns[i].push(v));
    this.pending = null;
    this.count = 0;
    if (this.times.length === capacity) this.halve();
  }

  halve() {
    const pairs = (all, f) => Array.from({ length: all.length / 2 }, (_, i) => f(all[2 * i], all[2 * i + 1]));
    this.times = pairs(this.times, merge.last);
    this.columns = this.columns.map((c, i) => pairs(c, merge[this.how[i]]));
    this.stride *= 2;
  }
}
