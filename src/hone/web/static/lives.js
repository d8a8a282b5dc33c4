// Lessons through their lives: changes that belong to the same lesson, as one.

/** From changes, the newest first: lessons, the one that moved last first, each with its steps in order. */
export function lives(changes) {
  const lessons = [];
  const of = new Map();
  for (const change of [...changes].reverse()) {
    const lesson = of.get(change.about) || former(lessons, change) || { steps: [] };
    if (!lesson.steps.length) lessons.push(lesson);
    lesson.steps.push(change);
    lesson.target = change.target;
    if (change.contents.length && change.standing !== "pending") lesson.words = words(change, "+");
    lesson.proposed = change.standing === "pending" ? words(change, "+") : lesson.proposed;
    of.set(change.id, lesson);
  }
  return lessons.sort((a, b) => b.steps.at(-1).id - a.steps.at(-1).id);
}

/** The lesson whose words a change takes away or replaces; of a skill, the skill's. */
function former(lessons, change) {
  const same = lessons.filter((each) => each.target === change.target);
  if (change.target.startsWith("skill:")) return same.at(-1);
  const gone = words(change, "-");
  return same.findLast((each) => gone.some((line) => [...(each.words || []), ...(each.proposed || [])].includes(line)));
}

function words(change, sign) {
  return change.rows.filter((row) => row.sign === sign).map((row) => row.text.slice(1));
}

/** The step that a lesson stands on: the last one that changed something. */
export function current(lesson) {
  return lesson.steps.findLast((each) => each.contents.length) || lesson.steps.at(-1);
}
